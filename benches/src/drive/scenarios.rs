//! The scenarios, by group.

use anyhow::{Result, bail};

use super::Bench;
use super::client::Measured;
use super::report::Best;
use crate::job::Job;

mod append;
mod cold;
mod durable;
mod formats;
mod growth;
mod http;
mod load;
mod memory;
mod pgbench;
mod readers;
mod runtimes;
mod step;
mod stores;
mod stream;
mod telemetry;

/// The names of all groups, in order.
pub(super) const NAMES: [&str; 15] = [
    "step",
    "growth",
    "stream",
    "formats",
    "memory",
    "cold",
    "load",
    "durable",
    "stores",
    "append",
    "pgbench",
    "readers",
    "http",
    "runtimes",
    "telemetry",
];

/// Measures a group.
pub(super) async fn run(name: &str, bench: &mut Bench) -> Result<()> {
    match name {
        "step" => step::measure(bench).await,
        "growth" => growth::measure(bench).await,
        "stream" => stream::measure(bench).await,
        "formats" => formats::measure(bench).await,
        "memory" => memory::measure(bench).await,
        "cold" => cold::measure(bench).await,
        "load" => load::measure(bench).await,
        "durable" => durable::measure(bench).await,
        "stores" => stores::measure(bench).await,
        "append" => append::measure(bench).await,
        "pgbench" => pgbench::measure(bench).await,
        "readers" => readers::measure(bench).await,
        "http" => http::measure(bench).await,
        "runtimes" => runtimes::measure(bench).await,
        "telemetry" => telemetry::measure(bench).await,
        _ => bail!("unknown group `{name}`"),
    }
}

/// Runs each job several times, alternating between the jobs, so that a disturbance affects all of
/// them.
async fn repeat(bench: &Bench, times: u32, jobs: &[Job]) -> Result<Vec<Vec<Measured>>> {
    let mut all: Vec<Vec<Measured>> = jobs.iter().map(|_| Vec::new()).collect();
    for _ in 0..times {
        for (job, measured) in jobs.iter().zip(&mut all) {
            measured.push(bench.client.measure(job).await?);
        }
    }
    Ok(all)
}

/// Returns the smallest value of a figure.
fn least(measured: &[Measured], figure: impl Fn(&Measured) -> f64) -> Best {
    Best::least(measured.iter().map(figure))
}

fn micros(ns: u64, count: u64) -> f64 {
    ns as f64 / 1e3 / count as f64
}
