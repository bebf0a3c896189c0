//! Plays provider traffic, recorded or written by hand, through the model adapters.
//!
//! The folder has one subfolder per provider and API; `NAME.expect.json` has the expected content of `NAME.json`.
//!
//! * `helix-cassettes DIR [FILTER]` compares what the adapters read with the expected content. If the folder has
//!   `schemas/openai-requests.json`, it also validates the requests that the adapters make for the conversations.
//! * `helix-cassettes DIR [FILTER] --requests FILE` writes these requests into a file, one line of JSON each.
//! * `helix-cassettes fuzz DIR` sends mutated replies to the adapters. `--minutes M` sets the time for each wire format,
//!   by default one minute, and `--cases N` the number of cases instead. `--seed N` sets the seed. `--format NAME` and
//!   `--case N` select one wire format and one case.
#![expect(clippy::print_stdout, reason = "a command-line program prints to its terminal")]

mod case;
mod compare;
mod frames;
mod fuzz;
mod memory;
mod play;
mod play_all;
mod replay;
mod requests;
mod schemas;
mod variant;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use case::Case;
use schemas::Schemas;

const USAGE: &str = "\
usage: helix-cassettes DIR [FILTER] [--requests FILE]
       helix-cassettes fuzz DIR [--minutes M | --cases N] [--seed N] [--format NAME] [--case N]";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let differences = match &arguments[..] {
        ["fuzz", folder, options @ ..] => {
            fuzz::run(&Case::load_all(Path::new(folder))?, &plan(options)?)?
        }
        [folder, "--requests", file] => write_requests(folder, "", file)?,
        [folder, filter, "--requests", file] => write_requests(folder, filter, file)?,
        [folder] => play(folder, "")?,
        [folder, filter] => play(folder, filter)?,
        _ => bail!("{USAGE}"),
    };
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the options of mutated replies.
fn plan(mut options: &[&str]) -> Result<fuzz::Plan> {
    let mut plan = fuzz::Plan::default();
    while let [name, value, rest @ ..] = options {
        let number = || value.parse::<u64>().with_context(|| format!("`{value}` is not a number"));
        match *name {
            "--minutes" => {
                let minutes: f64 = value.parse()?;
                plan.time = Duration::try_from_secs_f64(60.0 * minutes)?;
            }
            "--cases" => plan.cases = Some(number()?),
            "--seed" => plan.seed = number()?,
            "--case" => plan.case = Some(number()?),
            "--format" => plan.format = Some((*value).to_owned()),
            _ => bail!("{USAGE}"),
        }
        options = rest;
    }
    if !options.is_empty() {
        bail!("{USAGE}");
    }
    Ok(plan)
}

fn load(folder: &str, filter: &str) -> Result<Vec<Case>> {
    let mut cases = Case::load_all(Path::new(folder))?;
    cases.retain(|case| case.name.contains(filter));
    ensure!(!cases.is_empty(), "{folder} has no cases whose names contain `{filter}`");
    Ok(cases)
}

/// Compares replies with their meanings, and requests with their schemas. Returns the number of differences.
fn play(folder: &str, filter: &str) -> Result<usize> {
    let cases = load(folder, filter)?;
    let differences = runtime()?.block_on(play_all::play_all(&cases))?;
    Ok(match Schemas::load(Path::new(folder))? {
        Some(schemas) => differences + assemble(&cases, Some(&schemas), std::io::sink())?,
        None => differences,
    })
}

/// Writes requests into a file and validates them. Returns the number of invalid ones.
fn write_requests(folder: &str, filter: &str, file: &str) -> Result<usize> {
    let cases = load(folder, filter)?;
    let schemas = Schemas::load(Path::new(folder))?;
    let mut out = BufWriter::new(File::create(file)?);
    let invalid = assemble(&cases, schemas.as_ref(), &mut out)?;
    out.flush()?;
    Ok(invalid)
}

/// Writes the requests of all cases and validates them. Returns the number of invalid ones.
fn assemble(cases: &[Case], schemas: Option<&Schemas>, mut out: impl Write) -> Result<usize> {
    let mut written = requests::Written::default();
    runtime()?.block_on(async {
        for case in cases {
            let writing = requests::write(case, schemas, &mut out, &mut written);
            writing.await.with_context(|| case.name.clone())?;
        }
        anyhow::Ok(())
    })?;
    println!(
        "{} requests, of which {} were compared with a schema: {} differences; {} calls with settings that their model \
         does not support",
        written.requests, written.validated, written.invalid, written.rejected
    );
    Ok(written.invalid)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
