//! How a gate that only reads the repository tells what it found.

use anyhow::{Result, bail};

/// Prints every complaint of one gate and fails if there is any.
pub(crate) fn gate(name: &str, complaints: fn() -> Result<Vec<String>>) -> Result<()> {
    show(name, &complaints()?)
}

/// Prints complaints and fails if there is any.
pub(crate) fn show(name: &str, complaints: &[String]) -> Result<()> {
    for complaint in complaints {
        eprintln!("{complaint}");
    }
    match complaints.len() {
        0 => {
            println!("{name}: nothing to complain about");
            Ok(())
        }
        1 => bail!("{name}: 1 complaint"),
        count => bail!("{name}: {count} complaints"),
    }
}
