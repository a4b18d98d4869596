//! GlobalSync: worker contexts and vertices folded into the shared context.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::program::Program;
use crate::vertex::Vertex;
use crate::view::Total;

/// Sums that can be joined: what workers' contexts are made of (TuX²'s Combine).
///
/// Implemented for numbers, arrays and tuples of them, [`Max`] and `()`. A context's scratch stays where it is: only sums travel between
/// processes, and scratch is best marked `#[serde(skip)]`.
pub trait Combine: Default + Send + Serialize + DeserializeOwned + 'static {
    /// Moves the sums of `from` into `self`, leaving them at zero in `from`.
    fn combine(&mut self, from: &mut Self);
}

impl Combine for () {
    fn combine(&mut self, (): &mut ()) {}
}

macro_rules! combine_numbers {
    ($($t:ty),*) => { $(
        impl Combine for $t {
            fn combine(&mut self, from: &mut Self) {
                *self += std::mem::take(from);
            }
        }
    )* };
}
combine_numbers!(u32, u64, usize, i32, i64, f32, f64);

impl<T: Combine, const N: usize> Combine for [T; N]
where
    [T; N]: Default + Serialize + DeserializeOwned,
{
    fn combine(&mut self, from: &mut Self) {
        self.iter_mut().zip(from).for_each(|(total, part)| total.combine(part));
    }
}

macro_rules! combine_tuples {
    ($($t:ident $at:tt),*) => {
        impl<$($t: Combine),*> Combine for ($($t,)*) {
            fn combine(&mut self, from: &mut Self) {
                $(self.$at.combine(&mut from.$at);)*
            }
        }
    };
}
combine_tuples!(A 0, B 1);
combine_tuples!(A 0, B 1, C 2);

/// The largest number seen, at least the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Max<T>(pub T);

impl<T: PartialOrd> Max<T> {
    /// Takes a number in.
    #[inline(always)]
    pub fn see(&mut self, number: T) {
        if number > self.0 {
            self.0 = number;
        }
    }
}

impl<T: PartialOrd + Default + Send + Serialize + DeserializeOwned + 'static> Combine for Max<T> {
    fn combine(&mut self, from: &mut Self) {
        self.see(std::mem::take(&mut from.0));
    }
}

/// Folds worker contexts into one total, and the total into the shared context (TuX² §3.3: Combine, Apply). Contexts are
/// combined in ascending worker order. One version of the shared context per clock is in flight.
///
/// A function or a closure does too: see [`IntoGlobalSync`](crate::IntoGlobalSync).
pub trait GlobalSync<P: Program>: Send + Sync + 'static {
    /// Finalizes the total into the next version of the shared context.
    fn apply(&self, total: P::Worker, global: &mut P::Global);
}

/// A [`GlobalSync`] that adds the vertices of a side to worker contexts before these are folded (TuX² §3.3: Aggregate).
pub trait Aggregate<P: Program, V: Vertex>: GlobalSync<P> {
    /// Adds a vertex to a worker context.
    fn aggregate(&self, vertex: Total<'_, V>, worker: &mut P::Worker);
}
