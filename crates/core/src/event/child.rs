//! What a log says of other sessions: the one that it is a child of, and its children.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

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

impl std::ops::AddAssign for ChildUsage {
    fn add_assign(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.steps += other.steps;
        self.tool_calls += other.tool_calls;
    }
}
