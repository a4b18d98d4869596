//! What is the same for all virtual workers, made once: processes each have their own, but virtual ones are in one memory, which
//! need not hold as many plans as there are workers.

use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;

use crate::Error;
use crate::run::Shared;

/// Things that workers share, in the order in which each asks for them.
#[derive(Debug)]
pub struct MadeOnce(Mutex<State>);

#[derive(Debug)]
struct State {
    /// How many things each worker has asked for.
    asked: Vec<usize>,
    /// What was made, until all workers have it, and how many have it.
    things: Vec<(Option<Shared>, usize)>,
}

impl MadeOnce {
    pub fn new(workers: usize) -> Self {
        Self(Mutex::new(State { asked: vec![0; workers], things: Vec::new() }))
    }

    /// Returns what `make` makes, or made for another worker that asked the same: all ask in the same order. Who comes while it
    /// is made waits.
    ///
    /// # Errors
    /// Those of `make`, which the next worker calls again.
    pub fn share(&self, worker: usize, make: &mut dyn FnMut() -> Result<Shared, Error>) -> Result<Shared, Error> {
        let mut state = lock(&self.0);
        let (at, workers) = (state.asked[worker], state.asked.len());
        if state.things.len() <= at {
            state.things.resize_with(at + 1, || (None, 0));
        }
        let thing = match &state.things[at].0 {
            Some(thing) => Arc::clone(thing),
            None => make()?,
        };
        state.asked[worker] += 1;
        let takers = state.things[at].1 + 1;
        state.things[at] = ((takers < workers).then(|| Arc::clone(&thing)), takers);
        Ok(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_ask_for_is_made_once() {
        let once = MadeOnce::new(3);
        let ask = |worker: usize, value: u32| {
            let thing = once.share(worker, &mut || Ok(Arc::new(value))).unwrap();
            *thing.downcast::<u32>().unwrap()
        };
        assert_eq!([ask(0, 1), ask(0, 2), ask(1, 3), ask(2, 4), ask(1, 5), ask(2, 6)], [1, 2, 1, 1, 2, 2]);
        let failed = once.share(1, &mut || Err(Error::NotAdditive));
        assert!(failed.is_err());
        assert_eq!(ask(1, 7), 7);
        assert_eq!([ask(0, 8), ask(2, 9)], [7, 7]);
    }
}
