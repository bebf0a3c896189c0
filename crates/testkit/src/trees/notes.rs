//! What is noted beside the logs, to compare them with: what tools did, and which answers were taken.

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
    /// The run that had it executed.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The key under which it ran.
    pub key: String,
    /// Which try it was.
    pub attempt: u32,
    /// Whether the log had a result of the call already when it began.
    pub recorded: bool,
}

/// Notes in memory, or in a file that outlives the process.
#[derive(Debug)]
pub struct Notes<T> {
    memory: Mutex<Vec<T>>,
    file: Option<PathBuf>,
}

impl<T: Clone + Serialize + DeserializeOwned> Notes<T> {
    /// Notes in this file of the folder; in memory without one.
    #[must_use]
    pub fn new(folder: Option<&Path>, name: &str) -> Self {
        Self { memory: Mutex::default(), file: folder.map(|folder| folder.join(name)) }
    }

    /// Notes one more.
    pub fn note(&self, note: T) {
        let Some(path) = &self.file else {
            self.memory.lock().unwrap_or_else(PoisonError::into_inner).push(note);
            return;
        };
        let line = serde_json::to_string(&note).unwrap();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// All of them, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<T> {
        let Some(path) = &self.file else {
            return self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
        };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
