//! Ranges of device memory, and how they are padded.

/// Values that every allocation and every access buffer is a multiple of: 256 bytes, where bindings of a GPU may begin.
pub const ALIGNMENT: usize = 64;

/// Bytes of a value, which is an `f32`, or an index or label as a `u32`.
pub const VALUE_BYTES: u64 = 4;

/// Returns a number of values with padding up to [`ALIGNMENT`], once at least: no two buffers begin in the same place.
#[must_use]
pub fn padded(len: usize) -> usize {
    len.max(1).next_multiple_of(ALIGNMENT)
}

/// Some values that follow each other in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    /// Which allocation of the device.
    pub buffer: u32,
    /// The first value in it.
    pub start: usize,
    /// How many values.
    pub len: usize,
}

impl DeviceRange {
    /// Returns a part of the range: `len` values from the `start`-th.
    ///
    /// # Panics
    /// Where the part goes beyond the range.
    #[must_use]
    pub fn part(self, start: usize, len: usize) -> Self {
        assert!(start + len <= self.len, "values {start}..{} of a range of {}", start + len, self.len);
        Self { start: self.start + start, len, ..self }
    }

    /// Tells whether it has values in common with another one.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let begin = self.start.max(other.start);
        let end = (self.start + self.len).min(other.start + other.len);
        self.buffer == other.buffer && begin < end
    }
}
