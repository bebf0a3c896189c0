//! `test`: nextest, a process per test, then doctests, which nextest does not run.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::behaviour::REPORT;
use crate::{e2e, process, servers, tools};

/// Runs all tests; the arguments go to nextest.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    tools::NEXTEST.ensure()?;
    tools::ensure_tmux()?;
    servers::up()?;
    forget_report()?;
    e2e::forget_reports()?;
    let nextest = ["nextest", "run", "--workspace", "--all-features"];
    let tests = process::run(&mut process::cargo(nextest.iter().chain(args)));
    let doctests =
        process::run(&mut process::cargo(["test", "--doc", "--workspace", "--all-features"]));
    match (tests, doctests) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(error), Ok(())) | (Ok(()), Err(error)) => Err(error),
        (Err(tests), Err(doctests)) => bail!("{tests}; {doctests}"),
    }
}

/// The report of an earlier run must not pass for this one's.
fn forget_report() -> Result<()> {
    if Path::new(REPORT).exists() {
        std::fs::remove_file(REPORT).with_context(|| format!("could not remove {REPORT}"))?;
    }
    Ok(())
}
