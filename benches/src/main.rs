//! `helix-bench`: benchmarks of the framework, compared with a bare reqwest loop that makes the
//! same calls.
//!
//! The program has several roles. Each runs as a separate process, so that only the client is
//! measured: `serve` is the model server, `measure` is the client, and `probe` is the client of a
//! store without a runtime. Without a role, the program drives the others.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "prints figures for users and for the driver, and progress"
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
