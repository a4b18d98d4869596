//! The index of an access: made once for a list of keys, and used in every iteration (section 4.3.3).

use crate::device::{DeviceRange, Segments};

/// The rows of a table that an access is about, in the order of the application's batch; a row may come several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    keys: Vec<u32>,
    /// Rows of the table that occur, ascending.
    targets: Vec<u32>,
    /// Where in `order` each target's places in the batch begin, and where the last one's end.
    starts: Vec<u32>,
    /// Places in the batch, by target and then ascending.
    order: Vec<u32>,
}

impl Index {
    /// Makes the index of a list of keys.
    #[must_use]
    pub fn new(keys: Vec<u32>) -> Self {
        let mut order: Vec<u32> = (0..keys.len() as u32).collect();
        order.sort_by_key(|&at| (keys[at as usize], at));
        let (mut targets, mut starts) = (Vec::new(), Vec::new());
        for (at, &place) in order.iter().enumerate() {
            let key = keys[place as usize];
            if targets.last() != Some(&key) {
                targets.push(key);
                starts.push(at as u32);
            }
        }
        starts.push(order.len() as u32);
        Self { keys, targets, starts, order }
    }

    /// Returns the key of each row of the batch.
    #[must_use]
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// Returns the rows of the table that occur, ascending.
    #[must_use]
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// Returns targets, where their places begin, and places: what a [`Segments`] has.
    #[must_use]
    pub fn segments(&self) -> [&[u32]; 3] {
        [&self.targets, &self.starts, &self.order]
    }

    /// Returns the values that it takes in a device's memory, without padding.
    #[must_use]
    pub fn len(&self) -> usize {
        2 * self.keys.len() + 2 * self.targets.len() + 1
    }

    /// Tells whether it is about no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns what a device is to hold: keys, targets, starts, places.
    #[must_use]
    pub fn values(&self) -> Vec<f32> {
        let all = [&self.keys, &self.targets, &self.starts, &self.order];
        all.into_iter().flatten().map(|&value| f32::from_bits(value)).collect()
    }

    /// Returns the keys within a range that holds [`Index::values`].
    #[must_use]
    pub fn keys_in(&self, range: DeviceRange) -> DeviceRange {
        range.part(0, self.keys.len())
    }

    /// Returns the segments within a range that holds [`Index::values`].
    #[must_use]
    pub fn segments_in(&self, range: DeviceRange) -> Segments {
        let (keys, targets) = (self.keys.len(), self.targets.len());
        Segments {
            targets: range.part(keys, targets),
            starts: range.part(keys + targets, targets + 1),
            rows: range.part(keys + 2 * targets + 1, keys),
        }
    }
}
