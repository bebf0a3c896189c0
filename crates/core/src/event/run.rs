//! Why runs begin, and how they end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Suspension;
use crate::error::ErrorRecord;
use crate::json::Json;

/// Why a run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trigger {
    /// The first turn of a session.
    Execute,
    /// A further turn of a session.
    Continue,
    /// A turn that was suspended, interrupted or failed continues.
    Resume,
    /// The run before it stopped without ending. What that run was asked for holds for this one.
    Recover,
    /// A caller aborted a session that had no live run.
    Abort,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunOutcome {
    /// The turn has its answer.
    Completed {
        /// The output: of the agent's output type, or the model's text, or nothing.
        output: Option<Json>,
    },
    /// The run cannot go on.
    Failed {
        /// Why.
        error: ErrorRecord,
    },
    /// Stopped on request at a step boundary; it can be resumed.
    Interrupted {
        /// As given with the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Stopped on request at once.
    Aborted {
        /// As given with the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The step cannot go on before somebody answered. Nothing waits in memory.
    Suspended {
        /// What it waits for.
        on: Arc<Suspension>,
    },
}
