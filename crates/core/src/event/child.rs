//! What a log says of other sessions: the one that it is a child of, and its children.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::id::{CallId, SessionId};

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
    /// What it may use, taken from its parent's budget; what it does not use comes back with its
    /// result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Budget>,
}
