//! The data that the edges of a cache carry.

use std::borrow::Cow;
use std::fmt;
use std::io;

use crate::map::view;

/// The data that each edge carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeType {
    /// Nothing: `()`.
    Nothing,
    /// A number with a fraction, a rating say: `f32`.
    Float,
    /// A count: `u32`.
    Count,
    /// A number that needs more digits, a time say: `f64`. No cache is written of it.
    Double,
}

impl EdgeType {
    const ALL: [Self; 4] = [Self::Nothing, Self::Float, Self::Count, Self::Double];

    /// Returns what messages call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no data",
            Self::Float => "numbers (f32)",
            Self::Count => "counts (u32)",
            Self::Double => "numbers (f64)",
        }
    }

    /// Says how to make a cache with these data where one has others.
    pub(super) fn remedy(self, found: Self) -> &'static str {
        match (self, found) {
            (Self::Nothing, _) => "convert its input again with --as graph",
            (Self::Count, _) => "convert its input again with --as corpus",
            (_, Self::Nothing) => {
                "convert its input again with --as ratings, and with --columns rating=none where it has no ratings"
            }
            _ => "convert its input again with --as ratings",
        }
    }

    pub(super) fn tag(self) -> u32 {
        self as u32
    }

    pub(super) fn from_tag(tag: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.tag() == tag)
    }

    /// Returns the bytes that an edge's data take in a file.
    pub(crate) const fn bytes(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Float | Self::Count => 4,
            Self::Double => 8,
        }
    }
}

impl fmt::Display for EdgeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for f32 {}
    impl Sealed for u32 {}
    impl Sealed for f64 {}
}

/// Data of edges: `()`, `f32`, `u32` and `f64`.
pub trait EdgeData: sealed::Sealed + bytemuck::Pod + Default + PartialEq + fmt::Debug + Send + Sync {
    /// Which it is.
    const TYPE: EdgeType;

    /// Returns the bytes to write.
    #[doc(hidden)]
    fn to_bytes(data: &[Self]) -> &[u8] {
        bytemuck::cast_slice(data)
    }

    /// Views what was written for `num_edges` edges.
    #[doc(hidden)]
    fn from_bytes(bytes: &[u8], _num_edges: usize) -> io::Result<Cow<'_, [Self]>> {
        view(bytes).map(Cow::Borrowed)
    }

    /// Tells whether the data are such as the readers return: no number is infinite or NaN.
    #[doc(hidden)]
    fn are_valid(_data: &[Self]) -> bool {
        true
    }
}

impl EdgeData for () {
    const TYPE: EdgeType = EdgeType::Nothing;

    fn from_bytes(_: &[u8], num_edges: usize) -> io::Result<Cow<'_, [Self]>> {
        // Takes no memory.
        Ok(Cow::Owned(vec![(); num_edges]))
    }
}

impl EdgeData for f32 {
    const TYPE: EdgeType = EdgeType::Float;

    fn are_valid(data: &[Self]) -> bool {
        // No early end, so that it is vectorized.
        data.iter().fold(true, |valid, number| valid & number.is_finite())
    }
}

impl EdgeData for u32 {
    const TYPE: EdgeType = EdgeType::Count;
}

impl EdgeData for f64 {
    const TYPE: EdgeType = EdgeType::Double;

    /// Messages are aligned for numbers of 32 bits.
    fn from_bytes(bytes: &[u8], _num_edges: usize) -> io::Result<Cow<'_, [Self]>> {
        Ok(Cow::Owned(bytemuck::pod_collect_to_vec(bytes)))
    }
}
