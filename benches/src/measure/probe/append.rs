//! One append and its baselines, alternating, so that a disturbance affects all of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use super::commit::Commit;
use super::log::Log;
use super::statement::Statement;
use crate::measure::place::{Location, Place};
use crate::probe::{Latencies, Latency};

/// The versions at which a log counts as young.
const YOUNG: std::ops::Range<u64> = 5..15;

pub(super) async fn measure(
    place: &Place,
    folder: &Path,
    before: u32,
    appends: u32,
) -> Result<Latencies> {
    let mut log = Log::create(Arc::clone(&place.handles.state), "long").await?;
    for _ in 0..before {
        log.append().await?;
    }
    let mut young = young(place, 0).await?;
    let mut commit = Commit::on(place, folder).await?;
    let mut statement = match &place.location {
        Location::Postgres(location) => Some(Statement::on(place, location).await?),
        _ => None,
    };
    let (mut of_append, mut of_early) = (Vec::new(), Vec::new());
    let (mut of_commit, mut of_statement) = (Vec::new(), Vec::new());
    for number in 1..=appends {
        of_append.push(time(log.append()).await?);
        if young.version() >= YOUNG.end {
            young = self::young(place, number).await?;
        }
        of_early.push(time(young.append()).await?);
        if let Some(commit) = &mut commit {
            of_commit.push(time(commit.once()).await?);
        }
        if let Some(statement) = &mut statement {
            of_statement.push(time(statement.once()).await?);
        }
    }
    Ok(Latencies {
        append: Latency::of(of_append),
        early: Latency::of(of_early),
        commit: commit.map(|_| Latency::of(of_commit)),
        statement: statement.map(|_| Latency::of(of_statement)),
    })
}

async fn young(place: &Place, number: u32) -> Result<Log> {
    let name = format!("young-{number}");
    let mut log = Log::create(Arc::clone(&place.handles.state), &name).await?;
    while log.version() < YOUNG.start {
        log.append().await?;
    }
    Ok(log)
}

/// Runs `work`. Returns its duration in nanoseconds.
async fn time(work: impl Future<Output = Result<()>>) -> Result<u64> {
    let started = Instant::now();
    work.await?;
    Ok(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
