//! `cassettes`: provider traffic, played through the model adapters.
//!
//! The repository has a few samples in `tests-providers/samples`, which its tests play. Recordings of real providers are
//! not part of it. The gate plays them if they are in their usual folder, and says so if they are not.

use std::path::Path;

use anyhow::{Result, bail};

use crate::process;

const USAGE: &str = "usage: cargo xtask cassettes DIR [FILTER]";

/// The usual folder of the recordings, beside the repository.
const USUAL: &str = "../shared/cassettes";

/// Plays the cases in a folder.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let [folder, filter @ ..] = args else { bail!("{USAGE}") };
    if filter.len() > 1 {
        bail!("{USAGE}");
    }
    play(folder, filter)
}

/// Plays the recordings in their usual folder, if it exists.
pub(crate) fn run_for_ci() -> Result<()> {
    if Path::new(USUAL).is_dir() {
        return play(USUAL, &[]);
    }
    println!("SKIPPED: there are no recordings of provider traffic in {USUAL}");
    Ok(())
}

fn play(folder: &str, filter: &[&str]) -> Result<()> {
    let player = ["run", "--quiet", "--package", "helix-agents-tests-providers", "--", folder];
    process::run(&mut process::cargo(player.iter().chain(filter)))
}
