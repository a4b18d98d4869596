//! The modelled network: when what is sent arrives, and what all know of it.

use std::collections::BTreeMap;

use super::model::Link;
use super::time::nanos;

/// A link's figures in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    pub latency: u64,
    pub message: u64,
    nanos_per_byte: f64,
}

impl From<Link> for Wire {
    fn from(link: Link) -> Self {
        Self {
            latency: nanos(link.latency_seconds),
            message: nanos(link.message_seconds),
            nanos_per_byte: 1e9 / link.bytes_per_second,
        }
    }
}

/// One direction of a worker's link, which carries one message after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    free: u64,
}

impl Lane {
    /// Takes bytes from `now` on, and returns when the first and the last of them are through.
    pub fn carry(&mut self, now: u64, bytes: usize, wire: &Wire) -> (u64, u64) {
        let first = now.max(self.free);
        self.free = first + (bytes as f64 * wire.nanos_per_byte).ceil() as u64;
        (first, self.free)
    }
}

/// What workers know of each other's progress: how many steps all have told to have ended, and which messages are still under
/// way to each.
#[derive(Debug)]
pub struct Frontier {
    /// The steps that each worker has told to have ended.
    told: Vec<u64>,
    all_told: u64,
    /// Messages to each worker that it has not taken in, by the steps that their senders had ended.
    under_way: Vec<BTreeMap<u64, usize>>,
}

impl Frontier {
    pub fn new(workers: usize) -> Self {
        Self { told: vec![0; workers], all_told: 0, under_way: vec![BTreeMap::new(); workers] }
    }

    /// Returns how many steps all workers have ended of which all that they sent to a worker was taken in.
    pub fn arrived(&self, at: usize) -> u64 {
        self.under_way[at].first_key_value().map_or(self.all_told, |(&step, _)| self.all_told.min(step))
    }

    /// A message is sent to a worker.
    pub fn send(&mut self, to: usize, step: u64) {
        *self.under_way[to].entry(step).or_insert(0) += 1;
    }

    /// A worker takes a message in.
    pub fn take_in(&mut self, to: usize, step: u64) {
        if let Some(count) = self.under_way[to].get_mut(&step) {
            *count -= 1;
            if *count == 0 {
                self.under_way[to].remove(&step);
            }
        }
    }

    /// A worker is known to have ended this many steps. Returns whether all are known to have ended more by that.
    pub fn tell(&mut self, worker: usize, steps: u64) -> bool {
        let was_last = self.told[worker] == self.all_told;
        self.told[worker] = steps;
        let before = self.all_told;
        if was_last {
            self.all_told = self.told.iter().copied().min().unwrap_or(0);
        }
        self.all_told > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_queue_on_a_lane() {
        let wire = Wire::from("8Mbit,1us,0us".parse::<Link>().unwrap());
        let mut lane = Lane::default();
        assert_eq!(lane.carry(0, 10, &wire), (0, 10_000));
        assert_eq!(lane.carry(4000, 1, &wire), (10_000, 11_000));
        assert_eq!(lane.carry(20_000, 1, &wire), (20_000, 21_000));
    }

    #[test]
    fn steps_arrive_with_their_messages() {
        let mut frontier = Frontier::new(2);
        frontier.send(1, 0);
        assert!(!frontier.tell(0, 3));
        assert!(frontier.tell(1, 2));
        assert_eq!([frontier.arrived(0), frontier.arrived(1)], [2, 0]);
        frontier.take_in(1, 0);
        assert_eq!(frontier.arrived(1), 2);
        frontier.send(0, 2);
        assert!(frontier.tell(1, 3));
        assert_eq!([frontier.arrived(0), frontier.arrived(1)], [2, 3]);
    }
}
