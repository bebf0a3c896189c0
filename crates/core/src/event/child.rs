//! What a log says of other sessions: the one that it is a child of, and its children.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::CompanionMode;
use crate::budget::Budget;
use crate::id::{CallId, SessionId};
use crate::usage::UsageRollup;

/// Who made a session that is a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentRef {
    /// The session that made it.
    pub session: SessionId,
    /// For which of its calls.
    pub call: CallId,
    /// The session at the top of the tree.
    pub root: SessionId,
    /// As what the child stays, if it does not end with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub companion: Option<CompanionRef>,
}

/// A child's session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildStart {
    /// The call that it is for.
    pub call: CallId,
    /// The session.
    pub session: SessionId,
    /// Its agent's name.
    pub agent: Arc<str>,
    /// As what it stays, if it does not end with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub companion: Option<CompanionRef>,
    /// What it may use, taken from its parent's budget; what it does not use comes back with its
    /// result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Budget>,
}

/// As what a child stays with its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionRef {
    /// Its name.
    pub name: String,
    /// Whether calls that give it something to do wait for it.
    pub mode: CompanionMode,
}

impl CompanionRef {
    /// Whether it works beside its parent, and tells it when it is done.
    #[must_use]
    pub fn is_background(&self) -> bool {
        self.mode == CompanionMode::NonBlocking
    }
}

/// What a message says of a companion's run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildNotice {
    /// The companion's session.
    pub session: SessionId,
    /// What it has used up, all in all.
    pub used: Arc<UsageRollup>,
}
