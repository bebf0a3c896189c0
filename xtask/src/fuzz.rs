//! `fuzz`: mutated replies of providers, sent to the model adapters.

use anyhow::{Result, bail};

use crate::process;

const USAGE: &str =
    "usage: cargo xtask fuzz DIR [--minutes M | --cases N] [--seed N] [--format NAME] [--case N]";

/// Mutates the replies in a folder. The arguments after the folder are passed to the program.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let [folder, ..] = args else { bail!("{USAGE}") };
    if folder.starts_with('-') {
        bail!("{USAGE}");
    }
    let program = ["run", "--quiet", "--profile", "fuzzing", "--package"];
    let program = program.iter().chain(&["helix-agents-tests-providers", "--", "fuzz"]);
    process::run(&mut process::cargo(program.chain(args)))
}
