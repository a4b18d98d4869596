//! Which versions of a row are on their way.

/// The lowest and the highest version that are requested and have not arrived, each plus 1; 0 is none. There may be others
/// between them, which are then requested once more.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Requests {
    low: u32,
    high: u32,
}

impl Requests {
    /// Whether a thread in `clock` that needs version `needed` need only wait. A version beyond its clock does not count: it
    /// exists only when this thread has ended its clock, so that both would wait for each other.
    pub(super) fn cover(self, needed: u32, clock: u32) -> bool {
        let covers = |version: u32| version > needed && version <= clock + 1;
        covers(self.low) || covers(self.high)
    }

    /// Whether something comes that does not depend on the end of this clock.
    pub(super) fn any_before(self, clock: u32) -> bool {
        self.low != 0 && self.low <= clock + 1
    }

    pub(super) fn add(&mut self, version: u32) {
        if self.low == 0 || version < self.low {
            self.high = self.high.max(self.low);
            self.low = version + 1;
        } else {
            self.high = self.high.max(version + 1);
        }
    }

    pub(super) fn arrived(&mut self, version: u32) {
        let arrived = version.saturating_add(1);
        if self.high <= arrived {
            self.high = 0;
        }
        if self.low <= arrived {
            (self.low, self.high) = (self.high, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Requests;

    #[test]
    fn a_version_that_waits_for_the_reader_does_not_count() {
        let mut requests = Requests::default();
        assert!(!requests.cover(0, 0));
        // The first thread in clock 3 requests version 3; another is in clock 2 and needs 2.
        requests.add(3);
        assert!(requests.cover(3, 3) && requests.cover(1, 3) && requests.any_before(3));
        assert!(!requests.cover(2, 2) && !requests.any_before(2));
        requests.add(2);
        assert!(requests.cover(2, 2) && requests.cover(3, 3));
        requests.arrived(2);
        assert!(!requests.cover(2, 2) && requests.cover(3, 3));
        requests.arrived(3);
        assert!(!requests.any_before(9));
    }
}
