//! `test`: nextest, a process per test, then doctests, which nextest does not run.

use anyhow::{Result, bail};

use crate::{process, tools};

/// Runs all tests; the arguments go to nextest.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    tools::NEXTEST.ensure()?;
    tools::TMUX.ensure()?;
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
