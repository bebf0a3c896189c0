//! Who makes plans: the model, or code of one's own.

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

/// All that a planner is told.
#[derive(Debug, Clone, Copy)]
pub struct PlanRequest<'a> {
    /// The agent.
    pub agent: &'a str,
    /// What people asked for in this turn.
    pub user_input: &'a str,
    /// What was handed in beside it that people are not shown.
    pub user_extra_requirement: &'a str,
    /// The agent's system prompt, bounded.
    pub system_prompt: &'a str,
    /// The last of the earlier turns, bounded: `user: …` and `assistant: …`, one text each.
    pub history: &'a [String],
    /// The tools, in the agent's order, without those that complete it.
    pub available_tools: &'a [ToolSpec],
    /// What came of every command of this turn, unshortened.
    pub done_plans: &'a [ExecutionRecord],
    /// What came of those of the previous round.
    pub last_round_records: &'a [ExecutionRecord],
    /// This round, from 0.
    pub round_index: u32,
    /// How many rounds there may be.
    pub max_rounds: u32,
    /// What was wrong with the last plan of this round, if it has to be made again.
    pub problem: Option<&'a str>,
    /// The loop's options.
    pub options: &'a PlanOptions,
    /// The settings of model calls that make plans.
    pub config: &'a LlmConfig,
    /// Cancelled when the run is.
    pub cancel: &'a CancellationToken,
}

/// What a planner brought.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlanReply {
    /// The decision, in any of the spellings that
    /// [`Decision::normalise`](crate::Decision::normalise) reads.
    pub decision: Value,
    /// The tokens that it took; counted as the step's.
    pub usage: Usage,
}

impl From<Value> for PlanReply {
    fn from(decision: Value) -> Self {
        Self { decision, usage: Usage::default() }
    }
}

/// Makes plans in the model's place.
///
/// It is asked once per round; what it decides is recorded before anything is carried out, and not
/// asked for again after a crash.
#[async_trait]
pub trait Planner: fmt::Debug + Send + Sync + 'static {
    /// Decides what comes next.
    ///
    /// # Errors
    /// The planner's own. They fail the step: for good, unless they are
    /// [retryable](helix_agents_core::error::Error::is_retryable).
    ///
    /// # Cancel safety
    /// The future is dropped when the loop's time is up or the run ends.
    async fn plan(&self, request: PlanRequest<'_>) -> Result<PlanReply>;
}
