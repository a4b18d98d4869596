//! What worker contexts are made of.

use std::cmp::Ordering;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::store::{Additive, Item};

/// Sums that can be joined: what workers' contexts are made of (TuX²'s Combine).
///
/// Implemented for numbers, arrays and tuples of them, [`Max`] and `()`. A context's scratch stays where it is: only sums
/// travel between processes, and scratch is best marked `#[serde(skip)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what a worker gathers",
    note = "write a number (u32, u64, usize, i32, i64, f32, f64), an array of them or a tuple of two or three, `Max` of one, or a \
            struct that derives `Default`, `Serialize` and `Deserialize`, and implement `Combine` for it"
)]
pub trait Combine: Default + Send + Serialize + DeserializeOwned + 'static {
    /// Moves the sums of `from` into `self`, leaving them at zero in `from`.
    fn combine(&mut self, from: &mut Self);

    /// Returns one that takes as many bytes as those of an iteration over rows of `dims` items, from which a plan predicts what processes send.
    #[must_use]
    fn sized(_dims: usize) -> Self {
        Self::default()
    }
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

/// The largest number seen, at least the default; NaN once one was seen. As a delta it is at least zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(transparent)]
pub struct Max<T>(pub T);

impl<T: PartialOrd> Max<T> {
    /// Takes a number in.
    #[inline(always)]
    pub fn see(&mut self, number: T) {
        // What is compared with NaN is neither more nor less.
        let is_more = number.partial_cmp(&self.0) != Some(Ordering::Less) && self.0.partial_cmp(&self.0).is_some();
        if is_more {
            self.0 = number;
        }
    }
}

/// The larger of two, in place of their sum.
impl<T: Item + PartialOrd> Additive for Max<T> {
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.see(other.0);
    }
}

impl<T: PartialOrd + Default + Send + Serialize + DeserializeOwned + 'static> Combine for Max<T> {
    fn combine(&mut self, from: &mut Self) {
        self.see(std::mem::take(&mut from.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_is_not_a_number_once_one_is_not() {
        let seen = |numbers: &[f64]| {
            let mut max = Max::default();
            numbers.iter().for_each(|&number| max.see(number));
            max.0
        };
        assert_eq!(seen(&[1.0, 3.0, 2.0]), 3.0);
        assert_eq!(seen(&[-1.0]), 0.0);
        assert!(seen(&[1.0, f64::NAN, 2.0]).is_nan());
        let (mut total, mut part) = (Max(1.0), Max(f64::NAN));
        total.combine(&mut part);
        assert!(total.0.is_nan());
    }
}
