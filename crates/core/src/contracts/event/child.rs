//! References to other sessions in a log: the parent and the children.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::id::{CallId, SessionId};
use crate::trace::TraceParent;
use crate::usage::UsageRollup;

/// Whether the caller waits for a companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompanionMode {
    /// A call that gives the companion work returns when the work is done.
    Blocking,
    /// A call that gives the companion work returns immediately. A message notifies the caller when
    /// it is done.
    NonBlocking,
}

/// The parent of a child session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentRef {
    /// The parent session's id.
    pub session: SessionId,
    /// The call of the parent session that started the child.
    pub call: CallId,
    /// The root session of the tree.
    pub root: SessionId,
    /// The companion's name and mode, if the child is a companion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub companion: Option<CompanionRef>,
    /// The trace of the parent's turn and the span of the call. `None` for a companion, whose turns have traces of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// Whether a caller gave the trace and decided its sampled flag. Otherwise the trace is derived from the root session and
    /// its turn, and the flag is always set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_trace_given: bool,
}

impl ParentRef {
    /// Returns `true` if both refer to the same call. Ignores the trace, which older logs do not contain.
    #[must_use]
    pub fn is_same_call(&self, other: &Self) -> bool {
        let without_trace =
            |parent: &Self| Self { trace: None, is_trace_given: false, ..parent.clone() };
        without_trace(self) == without_trace(other)
    }
}

/// A child session that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildStart {
    /// The call that started the child.
    pub call: CallId,
    /// The child session's id.
    pub session: SessionId,
    /// The name of the child's agent.
    pub agent: Arc<str>,
    /// The companion's name and mode, if the child is a companion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub companion: Option<CompanionRef>,
    /// The part of the parent's budget that the child may use. What the child does not use returns
    /// to the parent with the child's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Budget>,
}

/// The name and mode of a companion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionRef {
    /// The companion's name.
    pub name: String,
    /// Whether calls that give the companion work wait for it.
    pub mode: CompanionMode,
}

impl CompanionRef {
    /// Returns `true` if the companion runs concurrently with its parent and sends it a message
    /// when it is done.
    #[must_use]
    pub fn is_background(&self) -> bool {
        self.mode == CompanionMode::NonBlocking
    }
}

/// The companion run that a message reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildNotice {
    /// The companion's session.
    pub session: SessionId,
    /// The companion's total usage.
    pub used: Arc<UsageRollup>,
}
