//! A factorization on GeePS, with the run record that a training command would write.
//!
//! Workers have this machine's processor as their device, and all memory that is of use, so that everything is pinned.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use megagrid_geeps::Consistency;
use megagrid_geeps::apps::Application;
use megagrid_geeps::device::{Cpu, VALUE_BYTES};
use megagrid_geeps::memory::Plan;
use megagrid_geeps::run::{Run, record as traced, train};
use megagrid_training::record::{Machine, Record};
use megagrid_training::{Data, Job, config};

use super::baseline::{conclude, resolved};
use super::job::Comparable;
use crate::common::Common;
use crate::geeps::iteration;
use crate::interrupt;

/// Runs a job, and writes its record.
pub fn run<A: Comparable>(job: Job<A>, common: &Common) -> anyhow::Result<()> {
    let (job, options) = resolved(job)?;
    let config = config::<A>(&job.origin, &options, &job.run, job.more.clone())?;
    let (workers, sizes) = (job.settings.workers, job.data.sizes());
    let machine = Machine { workers, vector: "cpu".into(), ..Machine::default() };
    let mut record = Record::begin(A::NAME, config, sizes.clone(), machine, job.phases, 0);
    let epochs = megagrid_training::Options::iterations(&job.options);
    let factors = A::factorization(job)?;
    let mut budget = 0;
    for worker in 0..workers {
        budget = budget.max(Plan::full_budget(&traced(&factors, worker)?.0));
    }
    let how = Run { workers, epochs, consistency: Consistency::Bsp, budget, prefetch: true };
    interrupt::iterations_begin();
    let mut clock = Instant::now();
    let finish = train(&factors, &how, |_| Ok(Arc::new(Cpu::new())), None, &mut |epoch, _| {
        let passed = clock.elapsed().as_secs_f64();
        clock = Instant::now();
        let one = iteration(epoch, None, &mut record, passed, sizes.edges as u64);
        record.iterations.push(one);
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    record.staleness = finish.staleness;
    let tables: usize = factors.tables().iter().map(|(_, table)| table.len()).sum();
    record.machine.memory_bytes = finish.resident_bytes.iter().sum::<u64>() + tables as u64 * VALUE_BYTES;
    // The server has each row, and each worker all pinned tables.
    conclude(record, 1.0 + workers as f64, common)
}
