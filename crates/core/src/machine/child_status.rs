//! The status of a child session, and the action that stops it.

use std::sync::Arc;

use super::agent_result::AgentResult;
use super::session::{RunStatus, SessionOverview};
use crate::usage::UsageRollup;

/// The status of a child session.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildStatus {
    /// The child's turn is over.
    Ended(Box<AgentResult>, Arc<UsageRollup>),
    /// An owner executes the child's run.
    Live,
    /// The child can continue: its run stopped without ending, or something that it waited for has
    /// arrived.
    Ready,
    /// The child was interrupted.
    Interrupted,
    /// The child waits for submissions.
    Waiting,
}

/// The action that stops a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopAction {
    /// No action is needed.
    None,
    /// Request the child's owner to stop it.
    Request,
    /// Abort the child directly, because it has no owner.
    Abort,
}

impl ChildStatus {
    /// Returns the status of the session in this fold. `alive` tells whether its run is leased,
    /// `has_ready_child` whether a child that it waits for can continue or has ended. Returns `None` if
    /// the session has no run.
    #[must_use]
    pub fn of(fold: &SessionOverview, alive: bool, has_ready_child: bool) -> Option<Self> {
        let run = fold.last_run()?;
        Some(match run.status {
            RunStatus::Running if alive => Self::Live,
            RunStatus::Running | RunStatus::Superseded => Self::Ready,
            RunStatus::Interrupted => Self::Interrupted,
            status if status.is_suspended() => {
                if fold.can_continue_step() || has_ready_child {
                    Self::Ready
                } else {
                    Self::Waiting
                }
            }
            _ => Self::Ended(Box::new(AgentResult::of(run)), Arc::new(fold.tree_usage())),
        })
    }

    /// Returns `true` if another run can continue the child.
    #[must_use]
    pub fn can_continue(&self) -> bool {
        matches!(self, Self::Ready | Self::Interrupted)
    }

    /// Returns the action that stops the child. With `permanently`, a completed child is aborted as
    /// well, so that it accepts no further messages.
    #[must_use]
    pub fn stop_action(&self, permanently: bool) -> StopAction {
        match self {
            Self::Ended(result, _) if !permanently || result.status == RunStatus::Aborted => {
                StopAction::None
            }
            Self::Live => StopAction::Request,
            _ => StopAction::Abort,
        }
    }
}
