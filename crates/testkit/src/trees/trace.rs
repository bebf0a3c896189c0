//! What tools did, as they noted it themselves.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use helix_agents_core::id::{CallId, SessionId};
use serde::{Deserialize, Serialize};

/// One execution of a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Execution {
    /// The session.
    pub session: SessionId,
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

/// Where executions are noted: in memory, or in a file that outlives the process.
#[derive(Debug, Default)]
pub struct Trace {
    memory: Mutex<Vec<Execution>>,
    file: Option<PathBuf>,
}

impl Trace {
    /// A trace in a file.
    #[must_use]
    pub fn in_file(path: &Path) -> Self {
        Self { memory: Mutex::default(), file: Some(path.to_owned()) }
    }

    /// Notes an execution.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn note(&self, execution: Execution) {
        let Some(path) = &self.file else {
            self.memory.lock().unwrap_or_else(PoisonError::into_inner).push(execution);
            return;
        };
        let line = serde_json::to_string(&execution).unwrap();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Everything that was noted, oldest first.
    ///
    /// # Panics
    /// If the file cannot be read.
    #[must_use]
    pub fn executions(&self) -> Vec<Execution> {
        let Some(path) = &self.file else {
            return self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
        };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
