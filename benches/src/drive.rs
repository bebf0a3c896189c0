//! The driver. It starts the server, starts processes that measure the figures, and compares the
//! figures with the bare loop, with our aims and with other frameworks.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;

mod client;
mod counter;
mod page;
mod peers;
mod report;
mod scenarios;
mod server;
mod table;

use client::Client;
use counter::Counter;
use report::Report;
use server::Server;

/// The maximum time that one process may take.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Benchmarks of the framework, compared with a bare reqwest loop that makes the same calls
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Arguments {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// The groups to measure; all groups by default
    #[arg(value_name = "GROUP", value_parser = scenarios::NAMES.to_vec())]
    groups: Vec<String>,
    /// Write the tables of the measured groups to the guide
    #[arg(long, conflicts_with = "quick")]
    write: bool,
    /// Measure only a few runs, which tests the benchmarks but gives no meaningful figures
    #[arg(long)]
    quick: bool,
}

/// The resources of the scenarios.
struct Bench {
    server: Server,
    client: Client,
    counter: Counter,
    report: Report,
    quick: bool,
}

impl Bench {
    /// Returns a number of repetitions, which is smaller in quick mode.
    fn repetitions(&self, normal: u32, quick: u32) -> u32 {
        if self.quick { quick } else { normal }
    }
}

/// Measures the groups that the command line selects.
///
/// # Errors
/// Fails if a measured run fails or has a wrong result.
pub(crate) fn run() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(drive(&arguments))
}

async fn drive(arguments: &Arguments) -> Result<()> {
    if cfg!(debug_assertions) && !arguments.quick {
        bail!("this is a debug build; use `cargo xtask bench` or --quick");
    }
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let server = Server::start(&program).await?;
    let client = Client::new(program, server.port())?;
    let counter = if arguments.quick { Counter::None } else { Counter::find().await };
    let report = Report::new(counter);
    let mut bench = Bench { server, client, counter, report, quick: arguments.quick };
    let (mut measured, mut failed) = (Vec::new(), Vec::new());
    for name in scenarios::NAMES {
        if arguments.groups.is_empty() || arguments.groups.iter().any(|group| group == name) {
            eprintln!("measuring {name} …");
            // A failed group must not prevent the others.
            if let Err(error) = scenarios::run(name, &mut bench).await {
                eprintln!("  failed: {error:#}");
                failed.push(name);
            } else {
                measured.push(name);
            }
        }
    }
    let seen = bench.server.seen().await?;
    bench.server.stop().await?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&bench.report)?);
    } else {
        print!("{}", table::render(&bench.report));
    }
    if arguments.write {
        page::write(&measured, &bench.report)?;
    }
    ensure!(seen.bad == 0, "{} requests were wrong", seen.bad);
    ensure!(failed.is_empty(), "failed groups: {}", failed.join(", "));
    Ok(())
}

/// Returns the command that runs this program in another role.
fn role(program: &PathBuf, arguments: &[&str]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).kill_on_drop(true);
    command
}
