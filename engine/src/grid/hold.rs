//! Holds: one atomic word per shard and store says who may look at its rows and who may change them.
//!
//! The word counts the workers that share the shard, or is [`OWNED`] while one has it exclusively. A worker never waits here: it
//! is refused and takes another block. Taking a hold acquires what the last exclusive holder released, and giving it back
//! releases this holder's writes, so that rows need no other synchronization.

use crate::machine::atomics::{AtomicU32, Ordering};

const OWNED: u32 = u32::MAX;

/// The hold word of one shard.
#[derive(Debug)]
pub struct Hold(AtomicU32);

impl Default for Hold {
    fn default() -> Self {
        Self(AtomicU32::new(0))
    }
}

impl Hold {
    /// Takes a shared hold, unless somebody owns the shard.
    pub fn try_share(&self) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen < OWNED - 1 {
            // Acquire pairs with the release in `end_own`.
            match self.0.compare_exchange_weak(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Gives a shared hold back.
    pub fn end_share(&self) {
        // Release pairs with the acquire in `try_own`: reads of this holder come before the owner's writes.
        let before = self.0.fetch_sub(1, Ordering::Release);
        debug_assert!(before != 0 && before != OWNED, "a shared hold is given back once");
    }

    /// Takes the exclusive hold, unless anybody holds the shard.
    pub fn try_own(&self) -> bool {
        // Acquire pairs with the releases in `end_share` and `end_own`.
        self.0.compare_exchange(0, OWNED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives the exclusive hold back.
    pub fn end_own(&self) {
        debug_assert_eq!(self.0.load(Ordering::Relaxed), OWNED, "an exclusive hold is given back once");
        self.0.store(0, Ordering::Release);
    }
}

/// Tries until a hold is given: for holds that others keep for the time of a block at most.
pub fn hold<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut refused = 0_u32;
    loop {
        if let Some(held) = attempt() {
            return held;
        }
        refused += 1;
        if refused.is_multiple_of(64) { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sharing_and_owning_exclude_each_other() {
        let hold = Hold::default();
        assert!(hold.try_share() && hold.try_share());
        assert!(!hold.try_own());
        hold.end_share();
        assert!(!hold.try_own());
        hold.end_share();
        assert!(hold.try_own());
        assert!(!hold.try_share() && !hold.try_own());
        hold.end_own();
        assert!(hold.try_share());
    }
}
