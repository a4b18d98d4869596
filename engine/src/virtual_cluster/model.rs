//! What is modelled: links, costs of tasks, and how much these vary.

use std::fmt;
use std::str::FromStr;

use megagrid_partition::SplitMix;
use serde::{Deserialize, Serialize};

use super::calibration::Calibration;

/// What is modelled of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The network.
    pub link: Link,
    /// What tasks cost.
    pub costs: Costs,
    /// Standard deviation of a clock's costs as a part of them, each worker and clock by itself; 0: none.
    pub jitter: f64,
    /// Decides jitter.
    pub seed: u64,
}

/// What tasks cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Costs {
    /// As long as each really takes: for a calibration, not for results that are to be reproduced.
    Measured,
    /// As calibrated, by stage.
    Calibrated(Calibration),
    /// So many seconds for each clock of a worker in which it runs on edges, however many these are; nothing else costs.
    Clock(f64),
}

/// A worker's connection to the network, both ways at a time. Bytes to different workers queue at the sender, bytes from
/// different workers at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Link {
    /// Each way.
    pub bytes_per_second: f64,
    /// From the moment a byte is sent to the moment it is there.
    pub latency_seconds: f64,
    /// What a message takes of the sender's processor, and of the receiver's.
    pub message_seconds: f64,
}

impl Default for Link {
    /// Ethernet of 1 Gbit/s.
    fn default() -> Self {
        Self { bytes_per_second: 125e6, latency_seconds: 100e-6, message_seconds: 5e-6 }
    }
}

/// What is wrong with the text of a link.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "\"{found}\" is no link; expected BANDWIDTH,LATENCY[,CPU], such as 1Gbit,100us,5us: bandwidth in bit, kbit, Mbit or \
     Gbit per second, times in ns, us, ms or s"
)]
pub struct NoLink {
    found: String,
}

/// Units and their powers of ten, the longer ones of those that end alike first.
const BITS: [(&str, i32); 4] = [("gbit", 9), ("mbit", 6), ("kbit", 3), ("bit", 0)];
const SECONDS: [(&str, i32); 4] = [("ns", -9), ("us", -6), ("ms", -3), ("s", 0)];

/// Reads a number with its unit.
fn quantity(text: &str, units: &[(&str, i32)]) -> Option<f64> {
    let text = text.trim().to_lowercase();
    let (number, power) = units.iter().find_map(|(name, power)| Some((text.strip_suffix(name)?, *power)))?;
    let number: f64 = number.trim().parse().ok()?;
    let value = if power < 0 { number / 10_f64.powi(-power) } else { number * 10_f64.powi(power) };
    (value.is_finite() && value >= 0.0).then_some(value)
}

impl FromStr for Link {
    type Err = NoLink;

    fn from_str(text: &str) -> Result<Self, NoLink> {
        let parts: Vec<&str> = text.split(',').collect();
        let read = || {
            let (bandwidth, times) = parts.split_first()?;
            let bytes_per_second = quantity(bandwidth, &BITS).filter(|bits| *bits >= 8.0)? / 8.0;
            let times: Option<Vec<f64>> = times.iter().map(|time| quantity(time, &SECONDS)).collect();
            let message_seconds = Self::default().message_seconds;
            match times?[..] {
                [latency_seconds] => Some(Self { bytes_per_second, latency_seconds, message_seconds }),
                [latency_seconds, message_seconds] => Some(Self { bytes_per_second, latency_seconds, message_seconds }),
                _ => None,
            }
        };
        read().ok_or_else(|| NoLink { found: text.to_owned() })
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded, as 1e-4 s are 99.99999999999999 us otherwise.
        let short = |value: f64| (value * 1e6).round() / 1e6;
        let [latency, message] = [self.latency_seconds, self.message_seconds].map(|seconds| short(seconds * 1e6));
        write!(f, "{}Mbit,{latency}us,{message}us", short(self.bytes_per_second * 8e-6))
    }
}

impl From<Link> for String {
    fn from(link: Link) -> Self {
        link.to_string()
    }
}

impl TryFrom<String> for Link {
    type Error = NoLink;

    fn try_from(text: String) -> Result<Self, NoLink> {
        text.parse()
    }
}

/// Returns what a worker's costs in a clock are multiplied with: normal around 1, never below a tenth.
pub fn jitter(model: &Model, worker: usize, clock: u64) -> f64 {
    if model.jitter == 0.0 {
        return 1.0;
    }
    let mut random = SplitMix::new(model.seed ^ (worker as u64) << 32, clock);
    // Box and Muller.
    let (radius, angle) = ((-2.0 * (1.0 - random.unit()).ln()).sqrt(), std::f64::consts::TAU * random.unit());
    (1.0 + model.jitter * radius * angle.cos()).max(0.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_and_written() {
        let link: Link = "1Gbit,100us".parse().unwrap();
        assert_eq!(link, Link::default());
        assert_eq!(link.to_string(), "1000Mbit,100us,5us");
        let link: Link = "40 Mbit, 1.5ms, 20us".parse().unwrap();
        assert_eq!(link.to_string().parse::<Link>().unwrap(), link);
        for text in ["", "1Gbit", "1Gbit,5", "0bit,1us", "1Gbit,-1us", "1Gbit,1us,1us,1us", "fast,1us", "NaNbit,1s"] {
            assert!(text.parse::<Link>().is_err(), "{text}");
        }
    }

    #[test]
    fn jitter_has_the_deviation_asked_for() {
        let model = Model { link: Link::default(), costs: Costs::Clock(1.0), jitter: 0.05, seed: 3 };
        let factors: Vec<f64> = (0..40)
            .flat_map(|worker| (1..100).map(move |clock| (worker, clock)))
            .map(|(w, c)| jitter(&model, w, c))
            .collect();
        let mean = factors.iter().sum::<f64>() / factors.len() as f64;
        let deviation = (factors.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / factors.len() as f64).sqrt();
        assert!((mean - 1.0).abs() < 0.005 && (deviation - 0.05).abs() < 0.003, "{mean} {deviation}");
    }
}
