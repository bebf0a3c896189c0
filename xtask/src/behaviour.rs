//! `behaviour`: the behaviours that the reference pages describe, and the tests that prove them.
//!
//! `docs/behaviour.toml` quotes every behaviour and names its tests, or the reason why ours differs. The pages, called
//! seeds, are not in the repository. If they are available, each quote is looked up; otherwise it is compared with its
//! digest in `docs/behaviour.lock`. Either way a changed quote is noticed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::report;
use crate::test::tier::Tier;
use entries::Entries;
use lock::Lock;
use ran::Ran;
use seeds::Seeds;

mod entries;
mod lock;
mod ran;
mod seeds;

#[cfg(test)]
mod tests;

const ENTRIES: &str = "docs/behaviour.toml";
const LOCK: &str = "docs/behaviour.lock";

/// The variable with the folder of the seeds, if the command line does not name one.
const SEEDS: &str = "HELIX_SEEDS";

const USAGE: &str = "usage: cargo xtask behaviour [--write] [--seeds PATH]";

#[derive(Debug, Default, PartialEq)]
struct Options {
    write: bool,
    seeds: Option<PathBuf>,
}

/// Checks the list against the seeds and the last test run. `--write` updates the lock file.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let options = options(args)?;
    let entries = Entries::read(&read(ENTRIES)?).with_context(|| format!("in {ENTRIES}"))?;
    let folder = options.seeds.clone().or_else(|| std::env::var_os(SEEDS).map(PathBuf::from));
    let seeds = folder.as_deref().map(Seeds::read).transpose()?;
    if options.write {
        return write(&entries, seeds.as_ref());
    }
    println!("{}", entries.count());
    let lock = Lock::read(&read(LOCK)?).with_context(|| format!("in {LOCK}"))?;
    let ran = Ran::read(&tests_report()?)?;
    report::show("behaviour", &complaints(&entries, seeds.as_ref(), &lock, &ran))
}

fn complaints(entries: &Entries, seeds: Option<&Seeds>, lock: &Lock, ran: &Ran) -> Vec<String> {
    let mut complaints = entries.check();
    match seeds {
        None => complaints.extend(lock.check(entries)),
        Some(seeds) => {
            complaints.extend(seeds.check(entries));
            if *lock != Lock::of(entries, seeds) {
                complaints.push(format!("{LOCK}: out of date; add --write"));
            }
        }
    }
    complaints.extend(ran.check(entries));
    complaints
}

fn write(entries: &Entries, seeds: Option<&Seeds>) -> Result<()> {
    let Some(seeds) = seeds else {
        bail!("--write needs the seeds: name their folder with --seeds PATH or in {SEEDS}");
    };
    report::show("quotes", &seeds.check(entries))?;
    std::fs::write(LOCK, Lock::of(entries, seeds).text()?)
        .with_context(|| format!("could not write {LOCK}"))
}

fn options(args: &[&str]) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--write" => options.write = true,
            "--seeds" => options.seeds = Some(args.next().context(USAGE)?.into()),
            other => bail!("unknown argument `{other}`; {USAGE}"),
        }
    }
    Ok(options)
}

/// Returns nextest's report of the last run that covered all suites.
fn tests_report() -> Result<String> {
    let tiers = [Tier::Gate, Tier::Deep].map(Tier::report);
    let report = tiers.iter().find(|report| Path::new(report).exists());
    read(report.context("run `cargo xtask test --gate` first")?)
}

fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}
