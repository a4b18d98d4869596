//! What all demos do once they have their data.

use megagrid_training::{Algorithm, Job, Options, Trained};

use crate::common::Common;
use crate::entry::Trains;
use crate::train::{conclude, observed, with_common};

/// What a demo shows of what it trained.
pub type Show<'s, A> =
    &'s dyn Fn(&megagrid_training::record::Record, &<A as Algorithm>::Model) -> anyhow::Result<String>;

/// Trains on data in memory, writes what is asked for, and shows how near the result comes.
pub fn train<A: Trains>(
    data: A::Data,
    origin: serde_json::Value,
    options: A::Options,
    common: &Common,
    show: Show<'_, A>,
) -> anyhow::Result<()> {
    options.check()?;
    let job = Job::<A>::new(data, origin, options, &common.run, &common.processes)?;
    let trained: Trained<A> = observed(with_common(job, common), common)?;
    let shown = trained.model.as_ref().map(|model| show(&trained.record, model)).transpose()?;
    conclude(trained, common, "")?;
    common.say(&shown.unwrap_or_default())
}
