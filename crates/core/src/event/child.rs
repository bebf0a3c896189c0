//! What a log says of other sessions: the one that it is a child of, and its children.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::CompanionMode;
use crate::id::{CallId, SessionId};
use crate::usage::Usage;

/// Who made a session that is a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentRef {
    /// The session that made it.
    pub session: SessionId,
    /// For which of its calls.
    pub call: CallId,
    /// The session at the top of the tree.
    pub root: SessionId,
    /// Whether it is told by a message when a run of the child has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notify: bool,
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
}

/// As what a child stays with its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionRef {
    /// Its name.
    pub name: String,
    /// Whether calls that give it something to do wait for it.
    pub mode: CompanionMode,
}

/// What a message says of a companion's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildNotice {
    /// The companion's session.
    pub session: SessionId,
    /// What it has used up, all in all.
    pub used: ChildUsage,
}

/// What a child used up, its own children included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChildUsage {
    /// Tokens.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub tokens: Usage,
    /// Model calls.
    pub steps: u32,
    /// Tool calls that were run.
    pub tool_calls: u64,
}

impl ChildUsage {
    /// What of it came after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            tokens: self.tokens.since(before.tokens),
            steps: self.steps.saturating_sub(before.steps),
            tool_calls: self.tool_calls.saturating_sub(before.tool_calls),
        }
    }
}

impl std::ops::AddAssign for ChildUsage {
    fn add_assign(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.steps += other.steps;
        self.tool_calls += other.tool_calls;
    }
}
