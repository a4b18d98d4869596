//! The items of one store for all rows of a side, and those of one role that are held.

use std::ops::Range;
use std::sync::Arc;

use megagrid_stages::simd::prefetch_to_write;
use megagrid_stages::{Item, Shape, Store};

use super::disjoint::{Disjoint, Owned, Shared};
use super::ends::{Held, HeldStore};
use crate::Error;

/// How many items each vertex has in stores with a capacity per vertex, by row.
pub type Capacities<'c> = Option<&'c [u32]>;

impl<T: Item> Disjoint<T> {
    pub fn num_pieces(&self) -> usize {
        self.bounds().len() - 1
    }

    pub fn bytes(&self) -> usize {
        self.bounds()[self.num_pieces()] * size_of::<T>()
    }

    /// Copies the items of some pieces from an array in the same pieces. `None`: a hold was refused.
    pub fn try_copy(&self, from: &Self, pieces: Range<usize>) -> Option<()> {
        let (mut into, from) = (self.try_own(pieces.clone())?, from.try_share(pieces)?);
        into.copy_from_slice(&from);
        Some(())
    }
}

/// The items of one store for all rows.
pub struct Array<S: Store + ?Sized> {
    pub items: Disjoint<S::Item>,
    /// Items per row, or 0 where `offsets` says.
    pub stride: usize,
    pub offsets: Arc<[usize]>,
}

impl<S: Store + ?Sized> Array<S> {
    pub fn new(bounds: &[usize], width: usize, capacities: Capacities<'_>) -> Result<Self, Error> {
        const { assert!(!matches!(S::SHAPE, Shape::Nothing) || size_of::<S::Item>() == 0, "nothing has no bytes") };
        let stride = match S::SHAPE {
            Shape::Entries => 0,
            Shape::Nothing | Shape::Value => 1,
            Shape::Row => width,
        };
        if S::SHAPE != Shape::Entries {
            let items = Disjoint::new(bounds.iter().map(|row| row * stride).collect())?;
            return Ok(Self { items, stride, offsets: Arc::default() });
        }
        let capacities = capacities.ok_or(Error::NoCapacities)?;
        let mut offsets = Vec::with_capacity(capacities.len() + 1);
        offsets.push(0);
        for &capacity in capacities {
            offsets.push(offsets[offsets.len() - 1] + capacity as usize);
        }
        let items = Disjoint::new(bounds.iter().map(|&row| offsets[row]).collect())?;
        Ok(Self { items, stride, offsets: offsets.into() })
    }

    /// Lets the rows before each of some pieces and those from it on lie on different nodes of memory.
    pub fn split_pages(self, joints: &[usize]) -> Self {
        Self { items: self.items.split_pages(joints), ..self }
    }

    /// Allocates zero items for the same rows.
    pub fn like(&self) -> Result<Self, Error> {
        Ok(Self { items: self.items.like()?, stride: self.stride, offsets: Arc::clone(&self.offsets) })
    }

    pub fn held<'h>(&'h self, rows: &Range<usize>, items: Held<'h, S>) -> HeldStore<'h, S> {
        let offsets = if self.offsets.is_empty() { &[][..] } else { &self.offsets[rows.start..rows.end + 1] };
        HeldStore { items, offsets }
    }

    pub fn try_share(&self, pieces: &Range<usize>) -> Option<Held<'_, S>> {
        match S::SHAPE {
            Shape::Nothing => Some(Held::Absent),
            _ => self.items.try_share(pieces.clone()).map(Held::Shared),
        }
    }

    pub fn try_own(&self, pieces: &Range<usize>) -> Option<Held<'_, S>> {
        match S::SHAPE {
            Shape::Nothing => Some(Held::Absent),
            _ => self.items.try_own(pieces.clone()).map(Held::Owned),
        }
    }

    /// Tells whether nothing lies between the items of rows of `dims` items.
    fn has_no_gaps(&self, dims: usize) -> bool {
        match S::SHAPE {
            Shape::Value => true,
            Shape::Row => self.stride == dims,
            Shape::Nothing | Shape::Entries => false,
        }
    }

    /// Returns where the items of `row` lie among those of rows that begin with `first`.
    #[inline(always)]
    fn span(&self, first: usize, row: usize) -> Range<usize> {
        match S::SHAPE {
            Shape::Nothing | Shape::Value => row - first..row - first + 1,
            Shape::Row => (row - first) * self.stride..(row - first + 1) * self.stride,
            Shape::Entries => self.offsets[row] - self.offsets[first]..self.offsets[row + 1] - self.offsets[first],
        }
    }
}

/// One role's items, held exclusively, addressed by row.
pub struct RoleMut<'h, S: Store + ?Sized> {
    pub(super) array: &'h Array<S>,
    pub(super) items: Owned<'h, S::Item>,
    pub(super) first: usize,
}

impl<S: Store + ?Sized> RoleMut<'_, S> {
    #[inline(always)]
    pub fn items(&mut self, row: usize) -> &mut [S::Item] {
        &mut self.items[self.array.span(self.first, row)]
    }

    /// Fetches a row that is written soon, where a row is one value.
    #[inline(always)]
    pub fn fetch(&self, row: usize) {
        if S::SHAPE == Shape::Value {
            prefetch_to_write(self.items.as_ptr().wrapping_add(row - self.first));
        }
    }

    pub fn first(&self) -> usize {
        self.first
    }

    /// Returns the items of all rows, of `dims` items each, where nothing lies between them.
    pub fn side_by_side(&mut self, dims: usize) -> Option<&mut [S::Item]> {
        self.array.has_no_gaps(dims).then_some(&mut *self.items)
    }
}

/// One role's items, shared with other readers, addressed by row.
pub struct Role<'h, S: Store + ?Sized> {
    pub(super) array: &'h Array<S>,
    pub(super) items: Shared<'h, S::Item>,
    pub(super) first: usize,
}

impl<S: Store + ?Sized> Role<'_, S> {
    pub fn first(&self) -> usize {
        self.first
    }

    /// Returns the items of all rows, of `dims` items each, where nothing lies between them.
    pub fn side_by_side(&self, dims: usize) -> Option<&[S::Item]> {
        self.array.has_no_gaps(dims).then_some(&*self.items)
    }

    pub fn num_items(&self) -> usize {
        self.items.len()
    }

    #[inline(always)]
    pub fn items(&self, row: usize) -> &[S::Item] {
        self.at_hand().items(row)
    }

    #[inline(always)]
    pub fn view(&self, row: usize) -> &S {
        self.at_hand().view(row)
    }

    /// Returns the rows for a loop over many of them.
    #[inline(always)]
    pub fn at_hand(&self) -> AtHand<'_, S> {
        AtHand { items: &self.items, array: self.array, first: self.first }
    }
}

/// One role's items in a loop, which leads to them without their hold.
pub struct AtHand<'a, S: Store + ?Sized> {
    items: &'a [S::Item],
    array: &'a Array<S>,
    first: usize,
}

impl<'a, S: Store + ?Sized> AtHand<'a, S> {
    #[inline(always)]
    pub fn items(&self, row: usize) -> &'a [S::Item] {
        &self.items[self.array.span(self.first, row)]
    }

    #[inline(always)]
    pub fn view(&self, row: usize) -> &'a S {
        S::view(self.items(row))
    }
}
