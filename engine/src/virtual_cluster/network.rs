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

/// What all workers know of each other's progress, as timely would tell them: of which step the earliest messages are
/// that are under way or may still be sent.
#[derive(Debug)]
pub struct Frontier {
    /// The steps that each worker has told to have ended.
    told: Vec<u64>,
    /// Messages that are not known to be taken in, by the steps that their senders had ended.
    under_way: BTreeMap<u64, usize>,
    arrived: u64,
}

impl Frontier {
    pub fn new(workers: usize) -> Self {
        Self { told: vec![0; workers], under_way: BTreeMap::new(), arrived: 0 }
    }

    /// Returns how many steps all workers have ended of which all that they sent was taken in.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// A message is sent.
    pub fn send(&mut self, step: u64) {
        *self.under_way.entry(step).or_insert(0) += 1;
    }

    /// A message is known to be taken in. Returns whether more has arrived by that.
    pub fn take_in(&mut self, step: u64) -> bool {
        if let Some(count) = self.under_way.get_mut(&step) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(&step);
            }
        }
        self.rise()
    }

    /// A worker is known to have ended so many steps. Returns whether more has arrived by that.
    pub fn tell(&mut self, worker: usize, steps: u64) -> bool {
        self.told[worker] = steps;
        self.rise()
    }

    fn rise(&mut self) -> bool {
        if self.under_way.first_key_value().is_some_and(|(&step, _)| step <= self.arrived) {
            return false;
        }
        let told = self.told.iter().copied().min().unwrap_or(0);
        let now = self.under_way.first_key_value().map_or(told, |(&step, _)| told.min(step));
        let rises = now > self.arrived;
        self.arrived = self.arrived.max(now);
        rises
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
        frontier.send(0);
        assert!(!frontier.tell(0, 3));
        assert!(!frontier.tell(1, 2));
        assert!(frontier.take_in(0));
        assert_eq!(frontier.arrived(), 2);
        frontier.send(2);
        assert!(!frontier.tell(1, 3));
        assert!(frontier.take_in(2));
        assert_eq!(frontier.arrived(), 3);
    }
}
