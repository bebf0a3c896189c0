//! Plays recorded provider traffic through the model adapters and compares what they read with the recorded meaning.
//!
//! Usage: `helix-cassettes DIR [FILTER] [--requests FILE]`. With `--requests`, it writes the requests that the adapters
//! make for the conversations into a file, one line of JSON each, instead of comparing replies. The folder has one subfolder per provider and API; each case `NAME.json` has
//! its meaning in `NAME.expect.json`.
#![expect(clippy::print_stdout, reason = "a command-line program prints to its terminal")]

mod case;
mod compare;
mod play;
mod replay;
mod requests;
mod variant;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use case::Case;
use variant::Variant;

const USAGE: &str = "usage: helix-cassettes DIR [FILTER] [--requests FILE]";

fn main() -> Result<ExitCode> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let requests = arguments.iter().position(|argument| argument == "--requests");
    let requests = requests.map(|at| arguments.split_off(at));
    let mut arguments = arguments.into_iter();
    let folder = arguments.next().context(USAGE)?;
    let filter = arguments.next().unwrap_or_default();
    let mut cases = Case::load_all(Path::new(&folder))?;
    cases.retain(|case| case.name.contains(&filter));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(requests) = requests {
        let [_, file] = &requests[..] else { bail!("{USAGE}") };
        return runtime.block_on(write_requests(&cases, Path::new(file)));
    }
    let mut totals = Totals::default();
    for case in &cases {
        runtime.block_on(play_case(case, &mut totals))?;
    }
    println!(
        "{} replies in {} variants and {} values sent back: {} differences; {} replies of APIs without an adapter",
        totals.replies, totals.plays, totals.values, totals.differences, totals.skipped
    );
    Ok(if totals.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn write_requests(cases: &[Case], file: &Path) -> Result<ExitCode> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    let mut written = requests::Written::default();
    for case in cases {
        requests::write(case, &mut out, &mut written).await.with_context(|| case.name.clone())?;
    }
    out.flush()?;
    println!(
        "{} requests written; {} have settings that the model does not support",
        written.requests, written.rejected
    );
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct Totals {
    replies: usize,
    plays: usize,
    values: usize,
    differences: usize,
    skipped: usize,
}

async fn play_case(case: &Case, totals: &mut Totals) -> Result<()> {
    for (number, exchange) in case.exchanges.iter().enumerate() {
        let Some(format) = play::format(exchange) else {
            totals.skipped += 1;
            continue;
        };
        totals.replies += 1;
        if let Some(replay) = replay::compare(case, number).await? {
            totals.values += replay.values;
            if let Some(missing) = replay.missing {
                totals.differences += 1;
                println!("{}[{number}]: {missing}", case.name);
            }
        }
        for variant in Variant::all(exchange) {
            totals.plays += 1;
            let response = play::play(&format, exchange, &variant).await?;
            for difference in compare::differences(&response, &exchange.expected) {
                totals.differences += 1;
                println!("{}[{number}] {variant}: {difference}", case.name);
            }
        }
    }
    Ok(())
}
