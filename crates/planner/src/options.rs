//! The options of an agent's planning loop.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::{AgentDefinition, Completion};
use helix_agents_core::clock::Clock;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;

use crate::executor::{CommandTool, EXECUTE_COMMANDS};
use crate::planner::Planner;

/// The default maximum number of rounds.
pub const DEFAULT_MAX_ROUNDS: u32 = 5;

/// The default maximum size in bytes of one result in a prompt.
pub const DEFAULT_MAX_RESULT_BYTES: usize = 16 * 1024;

/// The options of an agent's planning loop.
///
/// The number of concurrent commands is the agent's
/// [`tool_concurrency`](helix_agents_core::agent::AgentBuilder::tool_concurrency), and the time
/// limit of a command is the timeout of its tool, as for every call.
#[derive(Debug, Clone)]
#[must_use]
pub struct PlanOptions {
    pub(crate) enabled: bool,
    pub(crate) max_rounds: u32,
    pub(crate) max_result_bytes: usize,
    pub(crate) timeout: Option<LoopTimeout>,
    pub(crate) config: Option<LlmConfig>,
    pub(crate) planner: Option<Arc<dyn Planner>>,
    pub(crate) executor: Option<CommandTool>,
}

#[derive(Debug, Clone)]
pub(crate) struct LoopTimeout {
    pub(crate) limit: Duration,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            max_rounds: DEFAULT_MAX_ROUNDS,
            max_result_bytes: DEFAULT_MAX_RESULT_BYTES,
            timeout: None,
            config: None,
            planner: None,
            executor: None,
        }
    }
}

impl PlanOptions {
    /// Sets whether the agent plans. Without plans, the model calls the tools itself. Default:
    /// `true`.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets the maximum number of rounds. Default: 5. With 0, one plan is made and nothing is
    /// executed.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.max_rounds = rounds;
        self
    }

    /// Sets the maximum size in bytes of one result in a prompt. Default: 16 KiB. Records are never
    /// shortened.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = bytes;
        self
    }

    /// Sets the time limit for planning, counted from the start of the turn's first plan by the
    /// wall clock of `clock`. The start time is recorded with the plans, so a process that takes
    /// over continues with the remaining time, provided that the clocks agree. Time in which no
    /// process runs also counts. When the limit is reached, the current plan is dropped and the
    /// agent answers with the results so far. A running tool is limited by its own timeout.
    pub fn timeout(mut self, limit: Duration, clock: impl Clock) -> Self {
        self.timeout = Some(LoopTimeout { limit, clock: Arc::new(clock) });
        self
    }

    /// Sets the settings of the model calls that make plans, if they differ from the agent's, such
    /// as another model.
    pub fn llm(mut self, config: LlmConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Sets the planner that makes plans instead of the model. With `None`, the model makes them.
    pub fn planner(mut self, planner: Option<Arc<dyn Planner>>) -> Self {
        self.planner = planner;
        self
    }

    /// Sets the executor that runs the commands of a round instead of the runtime. With `None`, the
    /// runtime runs them. The agent must have [`CommandTool::tool`].
    pub fn executor(mut self, executor: Option<CommandTool>) -> Self {
        self.executor = executor;
        self
    }

    /// Validates the options for an agent.
    pub(crate) fn check(&self, agent: &AgentDefinition) -> Result<()> {
        let mut problems = Vec::new();
        if self.timeout.as_ref().is_some_and(|timeout| timeout.limit.is_zero()) {
            problems.push("`timeout` must be more than zero".to_owned());
        }
        if self.max_result_bytes == 0 {
            problems.push("`max_result_bytes` must be more than zero".to_owned());
        }
        let (steps, most) = (self.steps(), agent.limits().max_steps);
        if self.enabled && steps > most {
            problems.push(format!(
                "{} rounds and the answer take {steps} steps, and the agent's `max_steps` is {most}",
                self.max_rounds
            ));
        }
        if self.executor.is_some() && agent.tool(EXECUTE_COMMANDS).is_none() {
            let problem = "the agent lacks the executor's tool; add `CommandTool::tool` to it";
            problems.push(problem.to_owned());
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::new(ErrorCode::ConfigInvalid, problems.join("; "))
            .with_context("agent", agent.name()))
    }

    /// Returns the number of steps that a turn takes if every plan is usable.
    fn steps(&self) -> u32 {
        self.max_rounds.max(1).saturating_add(1)
    }
}

/// Returns the names of the tools that complete an agent, which cannot be commands.
pub(crate) fn completion_tools(agent: &AgentDefinition) -> Vec<Arc<str>> {
    match agent.completion() {
        Completion::FinishTools(names) => names.clone(),
        Completion::Text | Completion::Native | Completion::Finish => {
            vec![helix_agents_core::tool::FINISH_TOOL.into()]
        }
    }
}
