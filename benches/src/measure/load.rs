//! Sequential and concurrent runs, and their cost.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;

use super::{Runs, process};
use crate::job::{Job, Outcome};

/// Warms up, waits until the other threads have warmed up, and then measures.
pub(super) async fn run<R: Runs>(subject: R, job: &Job, warmed: &Barrier) -> Result<Outcome> {
    let subject = Arc::new(subject);
    repeat(&subject, job.warm, job.at_once).await?;
    // Blocking is fine here, because this tokio runtime has no other task.
    warmed.wait();
    let (cpu, started) = (process::cpu(), Instant::now());
    let mut took = repeat(&subject, job.runs, job.at_once).await?;
    let (wall, cpu) = (started.elapsed(), process::cpu().saturating_sub(cpu));
    took.sort_unstable();
    Ok(Outcome {
        wall_ns: nanos(wall),
        cpu_ns: nanos(cpu),
        whole_cpu_ns: nanos(process::cpu()),
        run_ns_median: took.get(took.len() / 2).copied().map_or(0, nanos),
        peak_bytes: process::peak_bytes()?,
        footprint: None,
    })
}

/// Makes runs. Returns the time of each.
async fn repeat<R: Runs>(subject: &Arc<R>, runs: u32, at_once: u32) -> Result<Vec<Duration>> {
    let started = Arc::new(AtomicU32::new(0));
    if at_once == 1 {
        return make_runs(Arc::clone(subject), started, runs).await;
    }
    let mut workers = JoinSet::new();
    for _ in 0..at_once.min(runs) {
        workers.spawn(make_runs(Arc::clone(subject), Arc::clone(&started), runs));
    }
    let mut took = Vec::with_capacity(runs as usize);
    while let Some(worker) = workers.join_next().await {
        took.extend(worker.context("a run panicked")??);
    }
    Ok(took)
}

/// Makes runs until all have been started.
async fn make_runs<R: Runs>(
    subject: Arc<R>,
    started: Arc<AtomicU32>,
    runs: u32,
) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    while started.fetch_add(1, Ordering::Relaxed) < runs {
        let start = Instant::now();
        subject.once().await?;
        took.push(start.elapsed());
    }
    Ok(took)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
