//! What is the same for all virtual workers, made once: processes each have their own, but virtual ones are in one memory, which
//! need not hold as many plans as there are workers.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Error;

/// Things that workers share, in the order in which each asks for them.
#[derive(Debug)]
pub struct Shelf(Mutex<State>);

#[derive(Debug)]
struct State {
    /// How many things each worker has asked for.
    asked: Vec<usize>,
    /// What was made, until all workers have it, and how many have it.
    things: Vec<(Option<Arc<dyn Any + Send + Sync>>, usize)>,
}

impl Shelf {
    pub fn new(workers: usize) -> Self {
        Self(Mutex::new(State { asked: vec![0; workers], things: Vec::new() }))
    }

    /// Returns what `make` makes, or made for another worker that asked the same: all ask in the same order. Who comes while it
    /// is made waits.
    ///
    /// # Errors
    /// Those of `make`, which the next worker calls again.
    pub fn share<T: Send + Sync + 'static>(
        &self,
        worker: usize,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, workers) = (state.asked[worker], state.asked.len());
        if state.things.len() <= at {
            state.things.resize_with(at + 1, || (None, 0));
        }
        let known = state.things[at].0.clone().and_then(|thing| thing.downcast().ok());
        let thing = match known {
            Some(thing) => thing,
            None => Arc::new(make()?),
        };
        state.asked[worker] += 1;
        let takers = state.things[at].1 + 1;
        state.things[at] = ((takers < workers).then(|| Arc::clone(&thing) as _), takers);
        Ok(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_ask_for_is_made_once() {
        let shelf = Shelf::new(3);
        let ask = |worker: usize, value: u32| *shelf.share(worker, || Ok(value)).unwrap();
        assert_eq!([ask(0, 1), ask(0, 2), ask(1, 3), ask(2, 4), ask(1, 5), ask(2, 6)], [1, 2, 1, 1, 2, 2]);
        let failed = shelf.share(1, || Err::<u32, _>(Error::NotAdditive));
        assert!(failed.is_err());
        assert_eq!(ask(1, 7), 7);
        assert_eq!([ask(0, 8), ask(2, 9)], [7, 7]);
    }
}
