//! The parameters of a new turn.

use std::collections::BTreeMap;

use helix_agents_core::budget::Budget;
use helix_agents_core::event::ParentRef;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::trace::TraceParent;

use super::StartedBy;
use crate::hook_chain::HookChain;

/// The parameters of a new turn.
pub(super) struct TurnRequest {
    pub(super) session: SessionId,
    pub(super) run: RunId,
    pub(super) target: TurnTarget,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) required_tags: BTreeMap<String, String>,
    pub(super) parent: Option<ParentRef>,
    pub(super) budget: Option<Budget>,
    pub(super) trace: Option<TraceParent>,
    pub(super) hooks: HookChain,
    pub(super) by: StartedBy,
}

/// The session in which a turn is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnTarget {
    /// A new session.
    New,
    /// An existing session, or a new one if there is none.
    Any,
    /// An existing session.
    Existing,
}
