//! What a run waits for when it is suspended, and what people answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ChildStart;
use crate::clock::Timestamp;
use crate::id::CallId;
use crate::json::Json;

/// What a suspended run waits for. Everything that whoever answers has to know stands in it, so
/// that an answer can be checked by a process which does not have the agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Suspension {
    /// The step that waits.
    #[serde(default)]
    pub step: u32,
    /// Calls that wait for people, in call order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Arc<PendingCall>>,
    /// Those of them that an earlier run of the step was suspended on already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<CallId>,
    /// Children that wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Arc<ChildStart>>,
}

/// Why a run has to wait, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SuspendReason {
    /// Its own calls wait for people.
    ClientTool,
    /// Only children wait.
    AwaitingChildren,
}

impl Suspension {
    /// Why, in one word.
    #[must_use]
    pub fn reason(&self) -> SuspendReason {
        if self.calls.is_empty() {
            SuspendReason::AwaitingChildren
        } else {
            SuspendReason::ClientTool
        }
    }

    /// Until when the first of the calls has to be answered, by the store's clock.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.calls.iter().filter_map(|pending| pending.deadline).min()
    }

    /// The calls that people have not been told of before.
    pub fn news(&self) -> impl Iterator<Item = &PendingCall> {
        let calls = self.calls.iter().filter(|pending| !self.before.contains(&pending.call));
        calls.map(|pending| &**pending)
    }
}

/// A call that waits for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: Arc<str>,
    /// What it waits for.
    pub kind: PendingKind,
    /// A digest of the arguments: what was seen is what is answered.
    pub digest: String,
    /// Until when it can be answered, by the store's clock. Without it, forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// What a result, or edited arguments, have to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Json>,
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PendingKind {
    /// Its result: the caller of the agent carries it out.
    Client,
    /// A yes or no before it runs. An editable one may be answered with other arguments.
    Approval {
        /// Whether whoever approves may change the arguments.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        editable: bool,
    },
}

/// What somebody answered to a call that waited for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// The result of a client tool.
    #[serde(rename = "result")]
    Returned(Json),
    /// A client tool failed; the message is for the model.
    Error(String),
    /// The call may run.
    Approved {
        /// The arguments to run it with, if they were changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<Json>,
    },
    /// The call must not run.
    Denied {
        /// For the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl Answer {
    /// Whether it is an answer to what the call waits for.
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
