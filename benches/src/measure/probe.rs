//! Probes of a store without a runtime. A process runs one probe and prints its result as one JSON
//! object.

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::place::Place;
use crate::probe::{Probe, ProbeKind};

mod append;
mod commit;
mod http;
mod log;
mod pgbench;
mod readers;
mod statement;

/// Runs the probe and prints its result.
///
/// # Errors
/// Fails if the store fails or returns a wrong result.
pub(crate) fn run(probe: &str) -> Result<()> {
    let probe: Probe = serde_json::from_str(probe).context("the probe is unreadable")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&probe))
}

async fn measure(probe: &Probe) -> Result<()> {
    let place = || Place::open(probe.store, &probe.folder);
    match probe.kind {
        ProbeKind::Append { before, appends } => {
            let place = place().await?;
            print(&append::measure(&place, &probe.folder, before, appends).await?)?;
            place.remove().await
        }
        ProbeKind::Readers(load) => {
            let place = place().await?;
            print(&readers::measure(&place, load).await?)?;
            place.remove().await
        }
        ProbeKind::Http(load) => {
            let place = place().await?;
            print(&http::measure(&place, load).await?)?;
            place.remove().await
        }
        ProbeKind::Pgbench { connections, seconds, rounds } => {
            print(&pgbench::measure(place, connections, seconds, rounds).await?)
        }
    }
}

fn print(found: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(found)?);
    Ok(())
}
