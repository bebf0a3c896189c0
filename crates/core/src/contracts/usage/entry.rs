//! A single usage entry.

use std::sync::Arc;

use serde::Serialize;

use super::rollup::UsageRollup;
use super::tokens::Usage;
use crate::budget::Cost;
use crate::clock::Timestamp;
use crate::id::{CallId, RunId, SessionId};

/// A usage entry that the fold finds in the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UsageEntry {
    /// The run that caused the usage.
    pub run: Option<RunId>,
    /// The step number.
    pub step: u32,
    /// The time of the record, by the store's clock.
    pub at: Option<Timestamp>,
    /// The kind of the usage.
    pub kind: UsageKind,
}

/// The kind of a usage entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UsageKind {
    /// The tokens of a model call.
    Tokens {
        /// The model that replied, as named by the provider. `None` if the provider did not report
        /// it.
        model: Option<Arc<str>>,
        /// The token usage.
        tokens: Usage,
        /// The cost, if the agent has a price for the model.
        cost: Option<Cost>,
        /// Whether the call produced a reply.
        success: bool,
        /// The time from request to end of reply, in milliseconds.
        took_ms: u64,
    },
    /// A tool call that ran or that waited for an answer.
    Tool {
        /// The id of the call.
        call: CallId,
        /// The tool's name.
        tool: Arc<str>,
        /// Whether the tool returned a result.
        success: bool,
        /// The time from start to end, in milliseconds.
        took_ms: u64,
        /// The number of attempts; 0 for a client tool and for a call whose deadline passed.
        attempts: u32,
    },
    /// A sub-agent that ended.
    SubAgent {
        /// The id of the call.
        call: CallId,
        /// The agent's name.
        agent: Arc<str>,
        /// The child session's id.
        session: SessionId,
        /// Whether the sub-agent produced an output.
        success: bool,
        /// The total usage of the child session, including its own children.
        used: Arc<UsageRollup>,
    },
    /// An amount recorded by a tool or hook.
    Custom {
        /// The type of the usage source.
        source_type: Arc<str>,
        /// The name of the usage source.
        source_name: Arc<str>,
        /// The amount used.
        amount: f64,
        /// The call that caused the usage, if any.
        call: Option<CallId>,
        /// Whether the operation that caused the usage succeeded.
        success: bool,
    },
}
