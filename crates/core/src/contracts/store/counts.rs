//! The numbers of sessions of a store.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use super::SessionStatus;
use crate::finding::Finding;

/// The numbers of sessions of a store by their state. They are serialized as a map with the names of
/// [`by_name`](Self::by_name).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionCounts {
    /// The number of sessions with a run whose lease has not expired.
    pub running: u64,
    /// The number of sessions with an unfinished run and no live lease. They can be resumed.
    pub stopped: u64,
    /// The numbers of sessions without an unfinished run, by status. Suspended sessions are
    /// [`Active`](SessionStatus::Active).
    pub without_run: Vec<(SessionStatus, u64)>,
}

impl SessionCounts {
    /// Returns the numbers that are not zero by the name of the state: `running`, `stopped`, or that
    /// of the status.
    #[must_use]
    pub fn by_name(&self) -> BTreeMap<&'static str, u64> {
        let ended = self.without_run.iter().map(|(status, number)| (status.as_str(), *number));
        let all = [("running", self.running), ("stopped", self.stopped)].into_iter().chain(ended);
        all.filter(|(_, number)| *number > 0).collect()
    }

    /// Returns advice if sessions stopped without ending.
    #[must_use]
    pub fn finding(&self) -> Option<Finding> {
        let sessions = match self.stopped {
            0 => return None,
            1 => "1 session".to_owned(),
            many => format!("{many} sessions"),
        };
        let message = format!("{sessions} stopped without ending");
        Some(Finding::advice("session_stopped", message, "resume them"))
    }
}

impl Serialize for SessionCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.by_name().serialize(serializer)
    }
}

/// Formats the numbers that are not zero, such as `1 completed, 2 running`.
impl fmt::Display for SessionCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.by_name();
        if named.is_empty() {
            return f.write_str("none");
        }
        let named: Vec<_> = named.iter().map(|(name, number)| format!("{number} {name}")).collect();
        f.write_str(&named.join(", "))
    }
}

#[cfg(test)]
mod tests;
