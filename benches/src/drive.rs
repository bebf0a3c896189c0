//! The driver: starts the server, has each figure measured by processes of their own, and says
//! how they compare with the bare loop, with our aims and with other frameworks.

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

/// The longest that one process may measure.
const PATIENCE: Duration = Duration::from_secs(180);

/// What a step costs, beside a bare reqwest loop that makes the same calls.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Arguments {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// What to measure; everything unless told
    #[arg(value_name = "GROUP", value_parser = scenarios::NAMES.to_vec())]
    groups: Vec<String>,
    /// Write the tables of what is measured into the guide
    #[arg(long, conflicts_with = "quick")]
    write: bool,
    /// Measure little: enough to see that everything works, not to compare anything
    #[arg(long)]
    quick: bool,
}

/// What scenarios are carried out with.
struct Bench {
    server: Server,
    client: Client,
    counter: Counter,
    report: Report,
    quick: bool,
}

impl Bench {
    /// A number of runs, or of anything, that quick measurements do less of.
    fn often(&self, usually: u32, quick: u32) -> u32 {
        if self.quick { quick } else { usually }
    }
}

/// Measures what the command line asks for.
///
/// # Errors
/// If a measured run fails or answers wrong.
pub(crate) fn run() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(drive(&arguments))
}

async fn drive(arguments: &Arguments) -> Result<()> {
    if cfg!(debug_assertions) && !arguments.quick {
        bail!("this was built for debugging; use `cargo xtask bench`, or --quick");
    }
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let server = Server::start(&program).await?;
    let client = Client::new(program, server.port())?;
    let counter = if arguments.quick { Counter::None } else { Counter::find().await };
    let report = Report::new(counter);
    let mut bench = Bench { server, client, counter, report, quick: arguments.quick };
    let (mut measured, mut failed) = (Vec::new(), Vec::new());
    for name in scenarios::NAMES {
        if arguments.groups.is_empty() || arguments.groups.iter().any(|it| it == name) {
            eprintln!("measuring {name} …");
            // One group that fails must not cost the figures of the others.
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
    ensure!(failed.is_empty(), "could not be measured: {}", failed.join(", "));
    Ok(())
}

/// This program in another role.
fn role(program: &PathBuf, arguments: &[&str]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).kill_on_drop(true);
    command
}
