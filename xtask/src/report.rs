//! Reports the complaints of gates that only read the repository.

use anyhow::{Result, bail};

/// Prints every complaint of a gate, and fails if there are any.
pub(crate) fn gate(name: &str, complaints: impl FnOnce() -> Result<Vec<String>>) -> Result<()> {
    show(name, &complaints()?)
}

/// Prints complaints, and fails if there are any.
pub(crate) fn show(name: &str, complaints: &[String]) -> Result<()> {
    for complaint in complaints {
        eprintln!("{complaint}");
    }
    match complaints.len() {
        0 => {
            println!("{name}: no complaints");
            Ok(())
        }
        1 => bail!("{name}: 1 complaint"),
        count => bail!("{name}: {count} complaints"),
    }
}
