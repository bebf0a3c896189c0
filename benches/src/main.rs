//! `helix-bench`: what a step costs, beside a bare reqwest loop that makes the same calls.
//!
//! One program in several roles, each a process of its own, so that what is measured is the client
//! alone: `serve` is the model, `measure` the client, `probe` the client of a store alone, and
//! without any of them it drives the others.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "figures for people and for the process that asked; progress beside them"
)]

use anyhow::Result;

mod drive;
mod job;
mod measure;
mod pin;
mod probe;
mod serve;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("serve"), None) => serve::run(),
        (Some("measure"), Some(job)) => measure::run(&job),
        (Some("probe"), Some(probe)) => measure::probe(&probe),
        _ => drive::run(),
    }
}
