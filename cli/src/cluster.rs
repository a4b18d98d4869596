//! A training command as one of several processes.

use std::sync::Arc;
use std::time::Duration;

use megagrid_engine::cluster::{Cluster, Membership, PATIENCE};

use crate::failure::usage;

/// How many seconds processes wait for each other at the start.
const PATIENCE_VARIABLE: &str = "MEGAGRID_PATIENCE";

/// Joins the other processes, if the environment names some: see [`Membership::from_environment`]. If one of them is lost
/// or fails, this process then ends with one line and exit code 1.
pub fn join() -> anyhow::Result<Option<Arc<Cluster>>> {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(membership) = Membership::from_environment(variable)? else { return Ok(None) };
    let patience = match variable(PATIENCE_VARIABLE).map(|seconds| (seconds.parse::<u32>(), seconds)) {
        None => PATIENCE,
        Some((Ok(seconds), _)) => Duration::from_secs(seconds.into()),
        Some((Err(_), found)) => {
            return Err(usage(format!("{PATIENCE_VARIABLE} is \"{found}\"; expected a number of seconds")));
        }
    };
    let cluster = Cluster::join(&membership, patience)?;
    cluster.on_loss(|reason| {
        eprintln!("megagrid: {reason}");
        // Timely's threads cannot be made to give up; what is on disk is whole or absent at any moment.
        std::process::exit(1);
    });
    Ok(Some(cluster))
}
