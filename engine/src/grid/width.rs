//! Widths of rows: known when the engine is compiled where they are common, so that loops over a row unroll.

use std::ops::Range;

use megagrid_stages::{Shape, Store};

mod sealed {
    pub trait Sealed {}
    impl<const N: usize> Sealed for super::Fixed<N> {}
    impl Sealed for super::Runtime {}
}

/// How many items a row has in a store: a compile-time width for common rows, so that their loops unroll. Sealed: the walk
/// relies on getting the same answer each time.
pub trait Width: sealed::Sealed + Copy {
    /// Returns the items of a row.
    fn get(self) -> usize;
}

/// A width known when the engine is compiled.
#[derive(Clone, Copy)]
pub struct Fixed<const N: usize>;

impl<const N: usize> Width for Fixed<N> {
    #[inline(always)]
    fn get(self) -> usize {
        N
    }
}

/// Any other width.
#[derive(Clone, Copy)]
pub struct Runtime(pub usize);

impl Width for Runtime {
    #[inline(always)]
    fn get(self) -> usize {
        self.0
    }
}

/// What is to be known where something was written there.
pub const PADDING: &str =
    "these stay zero, and rows have as many items as `Settings::dims` says, which `Trainer::dims` returns in training";

/// Tells whether rows of items have zeros in their padding. Where a run diverges there may be no numbers: 0 · ∞ is none.
pub fn has_zeros<S: Store + ?Sized>(items: &[S::Item], padding: &Range<usize>) -> bool {
    let is_zero = |row: &[S::Item]| {
        let padding = &row[padding.clone()];
        bytemuck::cast_slice::<_, u8>(padding).iter().all(|byte| *byte == 0)
            || bytemuck::try_cast_slice(padding).is_ok_and(|all: &[f32]| all.iter().all(|x| *x == 0.0 || x.is_nan()))
    };
    S::SHAPE != Shape::Row || padding.is_empty() || items.chunks_exact(padding.end).all(is_zero)
}
