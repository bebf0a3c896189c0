//! One thing that was used.

use std::sync::Arc;

use serde::Serialize;

use super::rollup::UsageRollup;
use super::tokens::Usage;
use crate::budget::Cost;
use crate::clock::Timestamp;
use crate::id::{CallId, RunId, SessionId};

/// One thing that was used, as the fold finds it in the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageEntry {
    /// The run that used it.
    pub run: Option<RunId>,
    /// The step.
    pub step: u32,
    /// When it was recorded, by the store's clock.
    pub at: Option<Timestamp>,
    /// What.
    pub kind: UsageKind,
}

/// What was used.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UsageKind {
    /// A model call.
    Tokens {
        /// The model that answered, as the provider names it; none if it said nothing.
        model: Option<Arc<str>>,
        /// What it counted.
        tokens: Usage,
        /// What that cost, if the agent has a price for the model.
        cost: Option<Cost>,
        /// Whether the call brought a reply.
        success: bool,
        /// Milliseconds from request to end of reply.
        took_ms: u64,
    },
    /// A tool that ran, or that people were asked for.
    Tool {
        /// The call.
        call: CallId,
        /// The tool.
        tool: Arc<str>,
        /// Whether it returned.
        success: bool,
        /// Milliseconds from start to end.
        took_ms: u64,
        /// How often it was started; 0 if people carried it out, or nobody did in time.
        attempts: u32,
    },
    /// A sub-agent that ended.
    SubAgent {
        /// The call.
        call: CallId,
        /// Its agent's name.
        agent: Arc<str>,
        /// Its session.
        session: SessionId,
        /// Whether it gave an output.
        success: bool,
        /// What its session used up, from its beginning on, its own children included.
        used: Arc<UsageRollup>,
    },
    /// What a tool or hook counted itself.
    Custom {
        /// What kind of thing.
        source_type: Arc<str>,
        /// Which one.
        source_name: Arc<str>,
        /// How much.
        amount: f64,
        /// The call that it is about, if it is about one.
        call: Option<CallId>,
        /// Whether what was paid for came about.
        success: bool,
    },
}
