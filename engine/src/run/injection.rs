//! Injected disturbances: workers that sleep, or lose part of their processor, as experiments on stragglers have them.
//!
//! They stop only the worker role: the masters that a thread keeps go on being served.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use megagrid_partition::SplitMix;
use serde::{Deserialize, Serialize};

/// What disturbs workers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Injection {
    /// Workers sleep in turn: `turns` turns begin with every clock, the workers' one after the other, and whose turn it is
    /// sleeps so long before the clock's first task (LazyTable, Figure 6).
    Delay {
        /// How long a worker sleeps.
        seconds: f64,
        /// Turns in a clock.
        turns: u64,
    },
    /// Time is cut into slots. In each a worker has, with some probability, half its processor only (LazyTable, Figure 7).
    Disrupt {
        /// The probability that a worker is disrupted in a slot.
        probability: f64,
        /// The length of a slot.
        slot_seconds: f64,
    },
}

/// What part of the processor a disrupted worker has.
const DISRUPTED: f64 = 0.5;
/// The shortest slot.
const LEAST_SLOT: f64 = 1e-6;

impl Injection {
    /// Returns how long a worker sleeps before a clock, from 1.
    pub(crate) fn before_clock(&self, worker: usize, workers: usize, clock: u64) -> Duration {
        match *self {
            Self::Delay { seconds, turns } => {
                let first = (clock - 1) * turns;
                let mine = (first..first + turns).filter(|turn| turn % workers as u64 == worker as u64).count();
                Duration::from_secs_f64(seconds * mine as f64)
            }
            Self::Disrupt { .. } => Duration::ZERO,
        }
    }

    /// Returns how much longer work takes that began so long after the run's start and would take `work`.
    pub(crate) fn during(&self, seed: u64, worker: usize, begin: Duration, work: Duration) -> Duration {
        let Self::Disrupt { probability, slot_seconds } = *self else { return Duration::ZERO };
        let (begin, mut left) = (begin.as_secs_f64(), work.as_secs_f64());
        let mut now = begin;
        loop {
            let slot = (now / slot_seconds).floor();
            let disrupted = SplitMix::new(seed ^ worker as u64, slot as u64).unit() < probability;
            let rate = if disrupted { DISRUPTED } else { 1.0 };
            let end = ((slot + 1.0) * slot_seconds).max(now + LEAST_SLOT / 2.0);
            if left <= (end - now) * rate {
                return Duration::from_secs_f64((now + left / rate - begin - work.as_secs_f64()).max(0.0));
            }
            left -= (end - now) * rate;
            now = end;
        }
    }

    /// Tells whether the lost time is taken by other work, rather than slept through.
    pub(crate) fn takes_cycles(&self) -> bool {
        matches!(self, Self::Disrupt { .. })
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay { seconds, turns } => write!(f, "delay:{seconds},{turns}"),
            Self::Disrupt { probability, slot_seconds } => write!(f, "disrupt:{probability},{slot_seconds}"),
        }
    }
}

impl From<Injection> for String {
    fn from(injection: Injection) -> Self {
        injection.to_string()
    }
}

/// What is wrong with the text of an injection.
#[derive(Clone, Debug, thiserror::Error)]
#[error("\"{found}\" is no injection; expected delay:SECONDS[,TURNS] or disrupt:PROBABILITY,SECONDS")]
pub struct NoInjection {
    found: String,
}

impl TryFrom<String> for Injection {
    type Error = NoInjection;

    fn try_from(text: String) -> Result<Self, NoInjection> {
        text.parse()
    }
}

impl FromStr for Injection {
    type Err = NoInjection;

    fn from_str(text: &str) -> Result<Self, NoInjection> {
        let refused = || NoInjection { found: text.to_owned() };
        let (kind, values) = text.split_once(':').ok_or_else(refused)?;
        let mut numbers = values.split(',').map(|number| number.trim().parse::<f64>().ok());
        let first = numbers.next().flatten().ok_or_else(refused)?;
        let second = numbers.next();
        if numbers.next().is_some() || second == Some(None) {
            return Err(refused());
        }
        let second = second.flatten();
        let injection = match kind {
            "delay" => Self::Delay { seconds: first, turns: second.unwrap_or(1.0) as u64 },
            "disrupt" => Self::Disrupt { probability: first, slot_seconds: second.ok_or_else(refused)? },
            _ => return Err(refused()),
        };
        let valid = match injection {
            Self::Delay { seconds, turns } => {
                (0.0..=86400.0).contains(&seconds) && (1..=1 << 16).contains(&turns) && second.is_none_or(is_whole)
            }
            Self::Disrupt { probability, slot_seconds } => {
                (0.0..=1.0).contains(&probability) && (LEAST_SLOT..=86400.0).contains(&slot_seconds)
            }
        };
        if valid { Ok(injection) } else { Err(refused()) }
    }
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in ["delay:2.5,1", "delay:0,4", "disrupt:0.1,0.5"] {
            assert_eq!(text.parse::<Injection>().unwrap().to_string(), text);
        }
        assert_eq!("delay:3".parse::<Injection>().unwrap(), Injection::Delay { seconds: 3.0, turns: 1 });
        for text in ["", "delay", "delay:", "delay:-1", "delay:1,0.5", "delay:1,2,3", "disrupt:0.1", "disrupt:2,1"] {
            assert!(text.parse::<Injection>().is_err(), "{text}");
        }
    }

    #[test]
    fn workers_are_delayed_in_turn() {
        let delay = Injection::Delay { seconds: 2.0, turns: 2 };
        let slept = |worker, clock| delay.before_clock(worker, 4, clock).as_secs_f64();
        assert_eq!([0, 1, 2, 3].map(|worker| slept(worker, 1)), [2.0, 2.0, 0.0, 0.0]);
        assert_eq!([0, 1, 2, 3].map(|worker| slept(worker, 2)), [0.0, 0.0, 2.0, 2.0]);
    }

    #[test]
    fn disrupted_work_takes_twice_as_long() {
        let second = Duration::from_secs(1);
        let during = |probability| Injection::Disrupt { probability, slot_seconds: 0.3 }.during(7, 0, second, second);
        assert_eq!(during(0.0), Duration::ZERO);
        assert!((during(1.0).as_secs_f64() - 1.0).abs() < 1e-9);
        let some = Injection::Disrupt { probability: 0.1, slot_seconds: 0.01 }.during(7, 0, second, 100 * second);
        assert!((some.as_secs_f64() - 5.3).abs() < 1.0, "{some:?}");
    }
}
