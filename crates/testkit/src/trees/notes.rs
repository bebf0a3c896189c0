//! Records that are kept outside the logs to compare them with the logs: executions of tools, and accepted
//! answers.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use helix_agents_core::id::{CallId, RunId, SessionId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// One execution of a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Execution {
    /// The session of the call.
    pub session: SessionId,
    /// The run that executed the call.
    pub run: RunId,
    /// The id of the call.
    pub call: CallId,
    /// The name of the tool.
    pub tool: String,
    /// The idempotency key of the execution.
    pub key: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// Whether the log already had a result of the call when the execution started.
    pub recorded: bool,
}

/// Records in memory, or in a file that outlives the process.
#[derive(Debug)]
pub struct Records<T> {
    memory: Mutex<Vec<T>>,
    file: Option<PathBuf>,
}

impl<T: Clone + Serialize + DeserializeOwned> Records<T> {
    /// Creates records in this file of the folder, or in memory without a folder.
    #[must_use]
    pub fn new(folder: Option<&Path>, name: &str) -> Self {
        Self { memory: Mutex::default(), file: folder.map(|folder| folder.join(name)) }
    }

    /// Adds a record.
    pub fn note(&self, note: T) {
        let Some(path) = &self.file else {
            self.memory.lock().unwrap_or_else(PoisonError::into_inner).push(note);
            return;
        };
        let line = serde_json::to_string(&note).unwrap();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Returns all records, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<T> {
        let Some(path) = &self.file else {
            return self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
        };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
