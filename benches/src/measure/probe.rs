//! A store alone: one probe, then what it found as one JSON object.

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::place::Place;
use crate::probe::{Of, Probe};

mod append;
mod commit;
mod log;
mod pgbench;
mod readers;
mod statement;

/// Does what is asked and prints what it found.
///
/// # Errors
/// If the store fails or answers wrong.
pub(crate) fn run(probe: &str) -> Result<()> {
    let probe: Probe = serde_json::from_str(probe).context("the probe cannot be read")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&probe))
}

async fn measure(probe: &Probe) -> Result<()> {
    let place = || Place::open(probe.store, &probe.folder);
    match probe.of {
        Of::Append { before, appends } => {
            let place = place().await?;
            answer(&append::measure(&place, &probe.folder, before, appends).await?)?;
            place.remove().await
        }
        Of::Readers(live) => {
            let place = place().await?;
            answer(&readers::measure(&place, live).await?)?;
            place.remove().await
        }
        Of::Pgbench { connections, seconds, rounds } => {
            answer(&pgbench::measure(place, connections, seconds, rounds).await?)
        }
    }
}

fn answer(found: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(found)?);
    Ok(())
}
