//! The interface for custom planners.

use std::fmt;

use async_trait::async_trait;
use helix_agents_core::error::Result;
use helix_agents_core::llm::LlmConfig;
use helix_agents_core::tool::ToolSpec;
use helix_agents_core::usage::Usage;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::options::PlanOptions;
use crate::record::ExecutionRecord;

/// The inputs of a planner.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PlanRequest<'a> {
    /// The name of the agent.
    pub agent: &'a str,
    /// The user's messages of this turn.
    pub user_input: &'a str,
    /// The hidden messages of this turn, which are not shown to the user.
    pub user_extra_requirement: &'a str,
    /// The agent's system prompt, shortened if necessary.
    pub system_prompt: &'a str,
    /// The latest of the earlier turns, shortened if necessary: `user: …` and `assistant: …`, one
    /// text each.
    pub history: &'a [String],
    /// The tools, in the agent's order, without those that complete the agent.
    pub available_tools: &'a [ToolSpec],
    /// The records of all commands of this turn, not shortened.
    pub done_plans: &'a [ExecutionRecord],
    /// The records of the previous round.
    pub last_round_records: &'a [ExecutionRecord],
    /// The number of this round, from 0.
    pub round_index: u32,
    /// The maximum number of rounds.
    pub max_rounds: u32,
    /// The problem of the last plan of this round, if it has to be made again.
    pub problem: Option<&'a str>,
    /// The options of the loop.
    pub options: &'a PlanOptions,
    /// The settings of model calls that make plans.
    pub config: &'a LlmConfig,
    /// A token that is cancelled together with the run.
    pub cancel: &'a CancellationToken,
}

/// The reply of a planner.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct PlanReply {
    /// The decision, in any of the forms that [`Decision::normalise`](crate::Decision::normalise)
    /// reads.
    pub decision: Value,
    /// The token usage of the planner. It is counted as usage of the step.
    pub usage: Usage,
}

impl PlanReply {
    /// Creates a reply with this decision, which took these tokens.
    #[must_use]
    pub const fn new(decision: Value, usage: Usage) -> Self {
        Self { decision, usage }
    }
}

impl From<Value> for PlanReply {
    fn from(decision: Value) -> Self {
        Self { decision, usage: Usage::default() }
    }
}

/// A planner that makes plans instead of the model.
///
/// It is called once per round. Its decision is recorded before anything is executed, so it is not
/// called again for that round after a crash.
#[async_trait]
pub trait Planner: fmt::Debug + Send + Sync + 'static {
    /// Decides the next action.
    ///
    /// # Errors
    /// Returns the errors of the planner. They fail the step, permanently unless they are
    /// [retryable](helix_agents_core::error::Error::is_retryable).
    ///
    /// # Cancel safety
    /// The future is dropped when the loop reaches its time limit or the run ends.
    async fn plan(&self, request: PlanRequest<'_>) -> Result<PlanReply>;
}
