//! The reasons for runs to start, and the ways in which they end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Suspension;
use crate::error::ErrorRecord;
use crate::json::Json;

/// The reason why a run started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trigger {
    /// The first turn of a session started.
    Execute,
    /// A further turn of a session started.
    Continue,
    /// A turn that was suspended, interrupted or failed was resumed.
    Resume,
    /// The previous run stopped without ending, and this run took over. Requests to the previous
    /// run apply to this one.
    Recover,
    /// A caller aborted a session that had no active run.
    Abort,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunOutcome {
    /// The turn is complete.
    Completed {
        /// The output: a value of the agent's output type, the model's text, or nothing.
        output: Option<Json>,
    },
    /// The run failed.
    Failed {
        /// The error that ended the run.
        error: ErrorRecord,
    },
    /// The run stopped on request at a step boundary. It can be resumed.
    Interrupted {
        /// The reason given with the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The run was stopped immediately on request.
    Aborted {
        /// The reason given with the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The step waits for answers or child sessions. The run holds no resources while it waits.
    Suspended {
        /// The pending calls and child sessions.
        on: Arc<Suspension>,
    },
}
