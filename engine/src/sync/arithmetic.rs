//! Sums and differences of items that are numbers, whatever their type.

use std::any::TypeId;

use bytemuck::{cast_slice, cast_slice_mut};
use megagrid_stages::Item;

/// How items are added and subtracted.
pub struct Arithmetic<I> {
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

impl<I: Item> Arithmetic<I> {
    /// Returns the arithmetic of a type of items; `None` for those that are no numbers.
    pub fn of() -> Option<Self> {
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

    /// Adds item by item.
    pub fn add(&self, into: &mut [I], from: &[I]) {
        (self.add)(into, from);
    }

    /// Subtracts item by item.
    pub fn subtract(&self, into: &mut [I], from: &[I]) {
        (self.subtract)(into, from);
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

    #[test]
    fn numbers_are_added_and_others_refused() {
        let floats = Arithmetic::<f32>::of().map(|of| {
            let mut items = [1.0, 2.0];
            of.add(&mut items, &[0.5, 0.5]);
            of.subtract(&mut items, &[1.0, 0.0]);
            items
        });
        assert_eq!(floats, Some([0.5, 2.5]));
        let counts = Arithmetic::<u32>::of().map(|of| {
            let mut items = [1, 2];
            of.subtract(&mut items, &[2, 0]);
            of.add(&mut items, &[3, 0]);
            items
        });
        assert_eq!(counts, Some([2, 2]));
        assert!(Arithmetic::<[f32; 2]>::of().is_none());
    }
}
