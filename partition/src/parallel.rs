//! Work on all threads of the current rayon pool.
//!
//! An iterator of rayon compiles a dozen functions for every closure that it is given. [`each`] compiles them once, and calls
//! what it is given by pointer, once for each piece of work.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

/// Pieces of work a thread, so that all threads end at about the same time.
const PIECES_PER_THREAD: usize = 16;

/// Takes a lock; what a thread that panicked left behind is as good as before.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `task` with one of the buffers of `pool`, or with a new one while others have them all.
pub fn with_one_of<B: Default, R>(pool: &Mutex<Vec<B>>, task: impl FnOnce(&mut B) -> R) -> R {
    let mut buffers = lock(pool).pop().unwrap_or_default();
    let result = task(&mut buffers);
    lock(pool).push(buffers);
    result
}

/// Calls `task` with each of `0..count`.
pub fn each(count: usize, task: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().with_max_len(1).for_each(task);
}

/// Runs both at the same time.
pub fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    let (mut a, mut b) = (Some(a), Some(b));
    let (mut of_a, mut of_b) = (None, None);
    join_both(&mut || of_a = a.take().map(|a| a()), &mut || of_b = b.take().map(|b| b()));
    match (of_a, of_b) {
        (Some(a), Some(b)) => (a, b),
        _ => unreachable!("both were called"),
    }
}

fn join_both(a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
    rayon::join(a, b);
}

/// Returns what `task` makes of each of `0..count`, in this order.
pub fn map<R: Send>(count: usize, task: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let len = piece(count);
    let made: Vec<Mutex<Vec<R>>> = (0..count.div_ceil(len)).map(|_| Mutex::default()).collect();
    each(made.len(), &|at| {
        let made_here = (at * len..count.min((at + 1) * len)).map(&task).collect();
        *lock(&made[at]) = made_here;
    });
    made.into_iter().flat_map(|made| made.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Returns an array of what `value` returns for each of `0..count`. It is in memory once, unlike that of [`map`].
pub fn fill<R: Clone + Default + Send>(count: usize, value: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut values = vec![R::default(); count];
    let len = piece(count);
    each_chunk(&mut values, len, |at, values| {
        values.iter_mut().zip(at * len..).for_each(|(slot, at)| *slot = value(at));
    });
    values
}

/// Calls `task` with each chunk of `len` items and its number; the last one may be shorter.
pub fn each_chunk<T: Send>(items: &mut [T], len: usize, task: impl Fn(usize, &mut [T]) + Sync) {
    consume(items.chunks_mut(len).enumerate().collect(), |(at, items)| task(at, items));
}

/// Hands each piece of work to `task`, once.
pub fn consume<W: Send>(work: Vec<W>, task: impl Fn(W) + Sync) {
    let work: Vec<Mutex<Option<W>>> = work.into_iter().map(|work| Mutex::new(Some(work))).collect();
    each(work.len(), &|at| {
        if let Some(work) = lock(&work[at]).take() {
            task(work);
        }
    });
}

/// Items of a piece of work, of `count` items in all: one where there are few.
fn piece(count: usize) -> usize {
    count.div_ceil(PIECES_PER_THREAD * rayon::current_num_threads()).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn everything_is_done_once_and_in_its_place() {
        for count in [0, 1, 7, 1000] {
            let squares: Vec<usize> = (0..count).map(|at| at * at).collect();
            assert_eq!(map(count, |at| at * at), squares);
            assert_eq!(fill(count, |at| at * at), squares);
            let (sum, calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
            consume(squares.clone(), |square| {
                sum.fetch_add(square, Ordering::Relaxed);
                calls.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!((sum.into_inner(), calls.into_inner()), (squares.iter().sum(), count));
        }
        assert_eq!(join(|| 1, || "two"), (1, "two"));
    }
}
