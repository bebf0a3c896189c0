//! The state of a store file, whether or not it can be opened, and what needs attention.

use std::path::{Path, PathBuf};

use serde::Serialize;

use helix_agents_core::error::{ErrorCode, ErrorRecord, Result};
use helix_agents_core::finding::Finding;
use helix_agents_core::guarantee::Guarantee;

use crate::config::Config;
use crate::{Folder, Inspection, SqliteBuilder, guarantees, inspect, worker};

/// The name of the local runtime, whose runs need no separate workers.
const LOCAL: &str = "local";

/// The free disk space, in bytes, below which the findings contain advice.
const LOW_DISK_SPACE: u64 = 100 * 1024 * 1024;

/// The state of a store file, its folder and the guarantees of the store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// Whether the file exists.
    pub exists: bool,
    /// The error with which [`open`](crate::SqliteBuilder::open) would refuse the file.
    pub error: Option<ErrorRecord>,
    /// The contents of the file, if it exists and can be used.
    pub file: Option<Inspection>,
    /// The folder of the file and its disk.
    pub folder: Folder,
    /// The approximate number of chunks that are kept per stream.
    pub stream_retention: u64,
    /// The guarantees of a store with this file.
    pub guarantees: Vec<Guarantee>,
}

/// Inspects the file and its folder.
fn diagnose(config: &Config) -> Diagnosis {
    let path = &config.path;
    let (file, error) = match inspect::inspect(config) {
        Ok(file) => (file, None),
        Err(error) => (None, Some(error.record())),
    };
    Diagnosis {
        path: std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        exists: path.exists(),
        error,
        file,
        folder: Folder::of(path),
        stream_retention: config.stream_retention.max(1),
        guarantees: guarantees::of(config.synchronous),
    }
}

impl SqliteBuilder {
    /// Inspects the file, its folder and the disk without creating or changing a file. If
    /// [`open`](Self::open) would refuse the file, the error is in [`Diagnosis::error`] and in
    /// [`Diagnosis::findings`].
    ///
    /// # Errors
    /// Returns [`StoreUnavailable`](helix_agents_core::error::ErrorCode::StoreUnavailable) if the
    /// operating system cannot start a thread.
    ///
    /// # Cancel safety
    /// Dropping the future does not cancel the inspection. It finishes in the background.
    pub async fn diagnose(&self) -> Result<Diagnosis> {
        let config = self.config.clone();
        worker::once("helix-sqlite-diagnose", move || Ok(diagnose(&config))).await
    }
}

impl Diagnosis {
    /// Returns what needs attention: problems that prevent agents from running with this file, and
    /// advice about its sessions and its disk.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let file = self.path.display();
        let mut findings = Vec::new();
        match &self.error {
            Some(error) => {
                let message = format!("{file}: {}", error.message);
                let code = error.to_error(ErrorCode::Internal).code();
                findings.push(Finding::problem(error.code.clone(), message, remedy(code)));
            }
            None => self.folder.check(&mut findings),
        }
        if let Some(found) = &self.file {
            found.check(&self.path, &mut findings);
        }
        findings
    }
}

impl Folder {
    /// Checks that the folder exists and is writable, and checks its disk for risks.
    fn check(&self, findings: &mut Vec<Finding>) {
        let path = self.path.display();
        if !self.exists {
            let message = format!("the folder of the database, {path}, does not exist");
            findings.push(problem(ErrorCode::ConfigInvalid, message));
        } else if !self.writable {
            let message = format!("the folder of the database, {path}, is not writable");
            findings.push(problem(ErrorCode::StoreReadOnly, message));
        }
        if let Some(name) = self.network_file_system {
            findings.push(Finding::advice(
                "network_file_system",
                format!("the folder of the database, {path}, is on a network file system ({name})"),
                "choose a file on a local disk, because SQLite's locks need one",
            ));
        }
        if let Some(free) = self.free_bytes.filter(|free| *free < LOW_DISK_SPACE) {
            findings.push(Finding::advice(
                "disk_nearly_full",
                format!("the disk of the database has only {} MB left", free / 1_000_000),
                "free some space, or choose a file on another disk",
            ));
        }
    }
}

impl Inspection {
    /// Checks that the file is writable, and finds sessions that need attention.
    fn check(&self, path: &Path, findings: &mut Vec<Finding>) {
        let file = path.display();
        if !self.writable {
            let message = format!("{file}: the database file is not writable");
            findings.push(problem(ErrorCode::StoreReadOnly, message));
        }
        findings.extend(self.sessions.finding());
        for engine in self.runtimes.iter().filter(|runtime| *runtime != LOCAL) {
            findings.push(Finding::advice(
                "engine_on_one_machine",
                format!(
                    "{file}: the file has sessions of {engine}, whose workers on other machines \
                     cannot access it"
                ),
                "run all workers on this machine, or move the sessions to PostgreSQL or Redis",
            ));
        }
    }
}

fn problem(code: ErrorCode, message: String) -> Finding {
    Finding::problem(code.as_str(), message, remedy(code))
}

/// Returns the remedy for an error of a file.
fn remedy(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::StoreForeign => "choose another file",
        ErrorCode::StoreNewer => "upgrade this program, or choose another file",
        ErrorCode::StoreCorrupt => {
            "restore the file from a backup, or choose another file and keep this one for a repair"
        }
        ErrorCode::StoreReadOnly => "make the file and its folder writable, or choose another file",
        ErrorCode::StoreBusy => "another process has locked the file: try again when it is done",
        ErrorCode::ConfigInvalid => "choose a file in an existing folder",
        _ => "check the disk, or choose another file",
    }
}

#[cfg(test)]
mod tests;
