//! Changes of a vertex's items and their sums: item by item where they are numbers, whatever their type; entries as their
//! store says.

use std::any::TypeId;

use bytemuck::{cast_slice, cast_slice_mut};
use megagrid_stages::{Changes, Item, Shape, Store};

use super::message::Malformed;

/// How a vertex's items change, for a store.
pub struct Arithmetic<I> {
    how: How<I>,
    /// Items of a row before padding.
    dims: usize,
}

enum How<I> {
    Numbers(Numbers<I>),
    Entries(Changes<I>),
}

impl<I: Item> Arithmetic<I> {
    /// Returns the arithmetic of a store; `None` where changes cannot be summed.
    pub fn of<S: Store<Item = I> + ?Sized>(dims: usize) -> Option<Self> {
        let how = match S::SHAPE {
            Shape::Nothing => None,
            Shape::Value | Shape::Row => Numbers::of().map(How::Numbers),
            Shape::Entries => S::CHANGES.map(How::Entries),
        };
        Some(Self { how: how?, dims })
    }

    /// Appends what has to be added to the items before to have those now; nothing where nothing changed.
    pub fn append_change(&self, now: &[I], before: &[I], out: &mut Vec<I>) {
        if cast_slice::<I, u8>(now) == cast_slice::<I, u8>(before) {
            return;
        }
        match &self.how {
            How::Numbers(numbers) => {
                let begin = out.len();
                out.extend_from_slice(now);
                (numbers.subtract)(&mut out[begin..], before);
            }
            How::Entries(changes) => (changes.append)(now, before, self.dims, out),
        }
    }

    /// Adds a change to a vertex's items.
    pub fn add(&self, into: &mut [I], change: &[I]) -> Result<(), Malformed> {
        let fits = match &self.how {
            How::Numbers(numbers) => {
                let fits = change.len() == into.len();
                if fits {
                    (numbers.add)(into, change);
                }
                fits
            }
            How::Entries(changes) => (changes.add)(into, change, self.dims),
        };
        if fits { Ok(()) } else { Err(Malformed) }
    }
}

/// How items are added and subtracted.
struct Numbers<I> {
    add: fn(&mut [I], &[I]),
    subtract: fn(&mut [I], &[I]),
}

macro_rules! numbers {
    ($wanted:ty: $($number:ty, $add:expr, $subtract:expr;)*) => { $(
        if TypeId::of::<$wanted>() == TypeId::of::<$number>() {
            return Some(Self {
                add: |into, from| each::<$wanted, $number>(into, from, $add),
                subtract: |into, from| each::<$wanted, $number>(into, from, $subtract),
            });
        }
    )* };
}

impl<I: Item> Numbers<I> {
    /// Returns the arithmetic of a type of items; `None` for those that are no numbers.
    fn of() -> Option<Self> {
        numbers! { I:
            f32, |a, b| a + b, |a, b| a - b;
            f64, |a, b| a + b, |a, b| a - b;
            i32, i32::wrapping_add, i32::wrapping_sub;
            u32, u32::wrapping_add, u32::wrapping_sub;
            i64, i64::wrapping_add, i64::wrapping_sub;
            u64, u64::wrapping_add, u64::wrapping_sub;
        }
        None
    }
}

/// Goes over two lists of items as the numbers that they are.
fn each<I: Item, T: Item>(into: &mut [I], from: &[I], of: impl Fn(T, T) -> T) {
    let (into, from): (&mut [T], &[T]) = (cast_slice_mut(into), cast_slice(from));
    into.iter_mut().zip(from).for_each(|(into, from)| *into = of(*into, *from));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::entries::Entries;

    #[test]
    fn changes_of_numbers_are_summed_and_others_refused() {
        let rows = Arithmetic::of::<[f32]>(2).map(|of| {
            let mut change = Vec::new();
            of.append_change(&[1.0, 2.0], &[1.0, 2.0], &mut change);
            assert!(change.is_empty());
            of.append_change(&[1.5, 2.0], &[1.0, 3.0], &mut change);
            let mut items = [7.0, 7.0];
            assert_eq!(of.add(&mut items, &change), Ok(()));
            assert_eq!(of.add(&mut items, &[1.0]), Err(Malformed));
            items
        });
        assert_eq!(rows, Some([7.5, 6.0]));
        let counts = Arithmetic::of::<u32>(1).map(|of| {
            let (mut change, mut items) = (Vec::new(), [5]);
            of.append_change(&[1], &[3], &mut change);
            assert_eq!(of.add(&mut items, &change), Ok(()));
            items
        });
        assert_eq!(counts, Some([3]));
        assert!(Arithmetic::of::<[f32; 2]>(1).is_none());
        assert!(Arithmetic::of::<Entries>(4).is_none() && Arithmetic::of::<()>(1).is_none());
    }
}
