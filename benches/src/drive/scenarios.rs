//! What is measured, group by group.

use anyhow::{Result, bail};

use super::Bench;
use super::client::Measured;
use super::report::Best;
use crate::job::Job;

mod append;
mod cold;
mod durable;
mod growth;
mod load;
mod memory;
mod pgbench;
mod readers;
mod runtimes;
mod step;
mod stores;
mod stream;

/// All groups, in order.
pub(super) const NAMES: [&str; 12] = [
    "step", "growth", "stream", "memory", "cold", "load", "durable", "stores", "append", "pgbench",
    "readers", "runtimes",
];

/// Measures a group.
pub(super) async fn run(name: &str, bench: &mut Bench) -> Result<()> {
    match name {
        "step" => step::measure(bench).await,
        "growth" => growth::measure(bench).await,
        "stream" => stream::measure(bench).await,
        "memory" => memory::measure(bench).await,
        "cold" => cold::measure(bench).await,
        "load" => load::measure(bench).await,
        "durable" => durable::measure(bench).await,
        "stores" => stores::measure(bench).await,
        "append" => append::measure(bench).await,
        "pgbench" => pgbench::measure(bench).await,
        "readers" => readers::measure(bench).await,
        "runtimes" => runtimes::measure(bench).await,
        _ => bail!("there is no group `{name}`"),
    }
}

/// Does each job several times, in turns, so that a disturbance does not hit one of them alone.
async fn repeat(bench: &Bench, times: u32, jobs: &[Job]) -> Result<Vec<Vec<Measured>>> {
    let mut all: Vec<Vec<Measured>> = jobs.iter().map(|_| Vec::new()).collect();
    for _ in 0..times {
        for (job, measured) in jobs.iter().zip(&mut all) {
            measured.push(bench.client.measure(job).await?);
        }
    }
    Ok(all)
}

/// The least of some figure.
fn least(measured: &[Measured], figure: impl Fn(&Measured) -> f64) -> Best {
    Best::least(measured.iter().map(figure))
}

fn micros(ns: u64, among: u64) -> f64 {
    ns as f64 / 1e3 / among as f64
}
