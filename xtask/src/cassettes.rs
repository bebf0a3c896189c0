//! `cassettes`: provider traffic, played through the model adapters.
//!
//! The repository has a few samples in `tests-providers/samples`, which its tests play. Recordings of real providers are
//! not part of it. The gate plays them if they are in their usual folder, and says so if they are not.

use std::path::Path;

use anyhow::{Result, bail};

use crate::process;

const USAGE: &str = "usage: cargo xtask cassettes [DIR [FILTER]]";

const PROGRAM: &str = "helix-cassettes";

/// The usual folder of the recordings, beside the repository.
const USUAL: &str = "../shared/cassettes";

/// Plays the cases in a folder, by default the recordings in their usual folder.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let [folder, filter @ ..] = args else { return play_usual() };
    if filter.len() > 1 {
        bail!("{USAGE}");
    }
    play(folder, filter)
}

/// Plays the recordings in their usual folder, if it exists.
fn play_usual() -> Result<()> {
    if Path::new(USUAL).is_dir() {
        return play(USUAL, &[]);
    }
    println!("SKIPPED: there are no recordings of provider traffic in {USUAL}");
    Ok(())
}

fn play(folder: &str, filter: &[&str]) -> Result<()> {
    // The gate `test` has already built the program with these features, so cargo does not build it again.
    let build = ["build", "--quiet", "--workspace", "--all-features", "--bin", PROGRAM];
    process::run(&mut process::cargo(build))?;
    let program = std::env::current_exe()?.with_file_name(PROGRAM);
    process::run(&mut process::program(program, [folder].iter().chain(filter)))
}
