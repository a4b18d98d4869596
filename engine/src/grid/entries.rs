//! A store with a capacity for each vertex, for tests: a number for each place.

use bytemuck::TransparentWrapper;
use megagrid_stages::{Additive, Shape, Store};

#[derive(TransparentWrapper)]
#[repr(transparent)]
pub struct Entries(pub [u32]);

impl Store for Entries {
    type Item = u32;
    const SHAPE: Shape = Shape::Entries;

    fn view(items: &[u32]) -> &Self {
        Self::wrap_ref(items)
    }

    fn view_mut(items: &mut [u32]) -> &mut Self {
        Self::wrap_mut(items)
    }
}

impl Additive for Entries {
    fn add(&mut self, other: &Self) {
        self.0.add(&other.0);
    }
}
