//! Suspended runs: the pending calls and their answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ChildStart;
use crate::clock::Timestamp;
use crate::id::CallId;
use crate::json::Json;

/// The pending calls and child sessions that a suspended run waits for. It holds all data that is
/// needed to validate an answer, so that a process without the agent definition can do so.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Suspension {
    /// The suspended step.
    #[serde(default)]
    pub step: u32,
    /// The pending calls of this session, in call order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Arc<PendingCall>>,
    /// The ids of the calls for which an earlier run of the step was already suspended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<CallId>,
    /// The child sessions that the run waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Arc<ChildStart>>,
}

/// The reason for a suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SuspendReason {
    /// The session's own calls wait for a client tool result or an approval.
    ClientTool,
    /// The session waits only for child sessions.
    AwaitingChildren,
}

impl Suspension {
    /// Returns the reason for the suspension.
    #[must_use]
    pub fn reason(&self) -> SuspendReason {
        if self.calls.is_empty() {
            SuspendReason::AwaitingChildren
        } else {
            SuspendReason::ClientTool
        }
    }

    /// Returns the earliest deadline of the pending calls, by the store's clock.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.calls.iter().filter_map(|pending| pending.deadline).min()
    }

    /// Returns the pending calls that no earlier suspension of the step has reported.
    pub fn new_calls(&self) -> impl Iterator<Item = &PendingCall> {
        let calls = self.calls.iter().filter(|pending| !self.before.contains(&pending.call));
        calls.map(|pending| &**pending)
    }
}

/// A call that waits for a client tool result or an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PendingCall {
    /// The id of the call.
    pub call: CallId,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The kind of answer that the call waits for.
    pub kind: PendingKind,
    /// A digest of the arguments, to ensure that the answer is for the arguments that were shown.
    pub digest: String,
    /// The deadline of the answer, by the store's clock. `None` means that there is no deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The schema of a result, or of edited arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Json>,
}

/// The kind of answer that a pending call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PendingKind {
    /// A result: the caller of the agent executes the tool.
    Client,
    /// An approval before the call runs. An editable call can be approved with other arguments.
    Approval {
        /// Whether the approver may change the arguments.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        editable: bool,
    },
}

/// An answer to a pending call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// The result of a client tool.
    #[serde(rename = "result")]
    Returned(Json),
    /// The failure message of a client tool, for the model.
    Error(String),
    /// The call is approved.
    Approved {
        /// The arguments to run the call with, if the approver changed them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<Json>,
    },
    /// The call is denied.
    Denied {
        /// The reason, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl Answer {
    /// Returns `true` if this kind of answer is valid for a pending call of this kind.
    #[must_use]
    pub fn fits(&self, kind: PendingKind) -> bool {
        match kind {
            PendingKind::Client => matches!(self, Self::Returned(_) | Self::Error(_)),
            PendingKind::Approval { .. } => {
                matches!(self, Self::Approved { .. } | Self::Denied { .. })
            }
        }
    }
}
