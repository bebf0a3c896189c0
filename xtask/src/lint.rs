//! `lint`: runs clippy on all targets and features. Here a warning is an error, unlike during development.

use anyhow::Result;

use crate::process;

/// The targets that are linted. The second selection is the core crate without its optional dependencies, as stores and
/// adapters may use it. The third is the code of the adapters that replaces a missing feature.
const SELECTIONS: [&[&str]; 3] = [
    &["--workspace", "--all-targets", "--all-features", "--keep-going"],
    &["--package", "helix-agents-core", "--lib"],
    &["--package", "helix-agents-llm", "--lib"],
];

/// Fails on any warning.
pub(crate) fn run() -> Result<()> {
    for selection in SELECTIONS {
        let mut clippy = process::cargo(["clippy"]);
        process::run(clippy.args(selection).args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}
