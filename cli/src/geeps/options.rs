//! Options of all applications.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use megagrid_datasets::output::check_replaceable;
use megagrid_geeps::device::{Cpu, Device};
use megagrid_geeps::modelled::Machine;
use megagrid_geeps::{Consistency, Error};
use megagrid_training::CheckpointOptions;
use megagrid_training::input::Source;
use serde::Serialize;

use crate::failure::usage;
use crate::output::wants_summary;

/// How an application is run.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[group(skip)]
pub struct Options {
    #[command(flatten)]
    pub source: Source,
    /// Worker threads of each process, each with device memory of its own.
    #[arg(short, long, default_value_t = 1, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub workers: usize,
    /// Passes over the data.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub epochs: u64,
    /// Samples or ratings of a worker's mini-batch [default: 128, or all samples of a worker where those are fewer].
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Decides first values, and the order of samples.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How fresh the parameters are that workers read.
    #[arg(long, value_enum, default_value_t = ConsistencyName::Bsp, help_heading = "Consistency")]
    pub consistency: ConsistencyName,
    /// Clocks, mini-batches that is, that a worker may be ahead of the slowest, with ssp [default: 0].
    #[arg(long, value_name = "CLOCKS", help_heading = "Consistency")]
    pub slack: Option<u64>,
    /// What computes: cpu is this processor; gpu is the fastest one with Vulkan, for commands that are built with
    /// the feature gpu; modelled computes as cpu does, and reports the time of a machine with the rates below.
    #[arg(long, value_enum, default_value_t = DeviceName::Cpu, help_heading = "Device")]
    pub device: DeviceName,
    /// Device memory of each worker, in bytes, or with KiB, MiB or GiB [default: what pins everything].
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Device")]
    pub budget: Option<u64>,
    /// Fetch data when they are asked for, not ahead: to be compared with.
    #[arg(long, help_heading = "Device")]
    pub no_prefetch: bool,
    /// Operations a second of a modelled device [default: 3.5e12].
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = "Device")]
    pub operations: Option<f64>,
    /// Bytes a second of a modelled device's memory [default: 200e9].
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = "Device")]
    pub memory: Option<f64>,
    /// Bytes a second between host and modelled device, each way [default: 6e9].
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = "Device")]
    pub copy: Option<f64>,
    /// Bytes a second between modelled machines, each way [default: 1.5e9].
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = "Device")]
    pub network: Option<f64>,
    #[command(flatten)]
    #[serde(flatten)]
    pub checkpoints: CheckpointOptions,
    /// Write the run record, or the plan, as JSON; "-" is stdout.
    // What a process writes and shows is no part of what is trained: others, and later runs, may do otherwise.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    #[serde(skip)]
    pub json: Option<PathBuf>,
    /// Write the run record as a page with plots, one HTML file.
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    #[serde(skip)]
    pub report: Option<PathBuf>,
    /// Print no progress and no summary.
    #[arg(short, long, help_heading = "Output")]
    #[serde(skip)]
    pub quiet: bool,
}

/// How fresh parameters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ConsistencyName {
    /// Every clock begins when all workers have ended the last one.
    Bsp,
    /// A worker may be --slack clocks ahead of the slowest.
    Ssp,
    /// A worker never waits.
    Async,
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DeviceName {
    /// This machine's processor.
    Cpu,
    /// The fastest device with Vulkan.
    Gpu,
    /// This machine's processor; times are of another machine.
    Modelled,
}

/// The devices of all workers.
pub struct Devices {
    /// That of each, which may be the same.
    pub all: Vec<Arc<dyn Device>>,
    /// What they are called.
    pub name: String,
}

impl Options {
    /// Checks options that do not go together, and that what is to be written can be.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.slack.is_some() && self.consistency != ConsistencyName::Ssp {
            return Err(usage("--slack goes with --consistency ssp"));
        }
        let rates = [
            ("--operations", self.operations),
            ("--memory", self.memory),
            ("--copy", self.copy),
            ("--network", self.network),
        ];
        if self.device != DeviceName::Modelled
            && let Some((name, _)) = rates.into_iter().find(|(_, rate)| rate.is_some())
        {
            return Err(usage(format!("{name} goes with --device modelled")));
        }
        if self.device == DeviceName::Gpu && !cfg!(feature = "gpu") {
            return Err(usage("--device gpu goes with a command that is built with --features gpu"));
        }
        for file in [&self.json, &self.report].into_iter().flatten() {
            if file != Path::new("-") {
                check_replaceable(file)?;
            }
        }
        Ok(())
    }

    /// Returns the consistency with its slack.
    pub fn consistency(&self) -> Consistency {
        match self.consistency {
            ConsistencyName::Bsp => Consistency::Bsp,
            ConsistencyName::Ssp => Consistency::Ssp { slack: self.slack.unwrap_or(0) },
            ConsistencyName::Async => Consistency::Async,
        }
    }

    /// Returns the rates of the machine whose time is reported, if it is not this one.
    pub fn machine(&self) -> Option<Machine> {
        let usual = Machine::DEFAULT;
        (self.device == DeviceName::Modelled).then(|| Machine {
            operations: self.operations.unwrap_or(usual.operations),
            memory: self.memory.unwrap_or(usual.memory),
            copy: self.copy.unwrap_or(usual.copy),
            network: self.network.unwrap_or(usual.network),
            latency: usual.latency,
        })
    }

    /// Opens the devices of all workers: one GPU for all of them, or a reference device each, which runs one command at a time.
    ///
    /// # Errors
    /// No GPU, where it is asked for.
    pub fn open(&self) -> Result<Devices, Error> {
        let each = || (0..self.workers).map(|_| Arc::new(Cpu::new()) as Arc<dyn Device>).collect();
        Ok(match self.device {
            #[cfg(feature = "gpu")]
            DeviceName::Gpu => {
                let gpu = Arc::new(megagrid_geeps::gpu::Gpu::new()?);
                let name = gpu.name().to_owned();
                Devices { all: vec![gpu; self.workers], name }
            }
            DeviceName::Modelled => Devices { all: each(), name: "modelled".to_owned() },
            _ => Devices { all: each(), name: "cpu".to_owned() },
        })
    }

    /// Returns the bytes of each worker's budget that copies take.
    pub fn staging_bytes(&self) -> u64 {
        match self.device {
            #[cfg(feature = "gpu")]
            DeviceName::Gpu => megagrid_geeps::gpu::STAGING_BYTES,
            _ => 0,
        }
    }

    /// Tells whether stdout is free for a summary.
    pub fn wants_summary(&self) -> bool {
        wants_summary(self.quiet, self.json.as_deref())
    }
}

/// Reads a number of bytes.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let refused = || "expected bytes, such as 1048576, 512KiB, 256MiB or 2GiB".to_owned();
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let (number, shift) =
        units.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift))).unwrap_or((text, 0));
    let number: u64 = number.trim().parse().map_err(|_| refused())?;
    number.checked_mul(1 << shift).ok_or_else(refused)
}

/// Reads a rate.
fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "expected a number above 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("1000"), Ok(1000));
        assert_eq!(parse_bytes("3KiB"), Ok(3072));
        assert_eq!(parse_bytes("256 MiB"), Ok(256 << 20));
        assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
        for broken in ["", "MiB", "1.5GiB", "-1", "20MB", "99999999999GiB"] {
            assert!(parse_bytes(broken).is_err(), "{broken}");
        }
    }
}
