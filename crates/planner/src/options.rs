//! How an agent's loop goes.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::{AgentDefinition, Completion};
use helix_agents_core::clock::Clock;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;

use crate::executor::{CommandTool, EXECUTE_COMMANDS};
use crate::planner::Planner;

/// How many rounds there may be, unless set.
pub const DEFAULT_MAX_ROUNDS: u32 = 5;

/// How many bytes of one result a prompt shows, unless set.
pub const DEFAULT_MAX_RESULT_BYTES: usize = 16 * 1024;

/// How an agent's loop goes.
///
/// How many commands run at once is the agent's
/// [`tool_concurrency`](helix_agents_core::agent::AgentBuilder::tool_concurrency), and how long one
/// may take its tool's timeout, as for every call.
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
    /// Whether there are plans at all. Without them the model calls the tools itself. Default yes.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// How many rounds may be carried out. Default 5. With 0 one plan is made and nothing carried
    /// out.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.max_rounds = rounds;
        self
    }

    /// How many bytes of one result go into a prompt. Default 16 KiB. Records are never shortened.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = bytes;
        self
    }

    /// How long plans may be made, from the beginning of the turn's first one, by the wall clock of
    /// `clock`. The beginning is recorded with the plans, so a process that takes over goes on with
    /// what is left, as exactly as its clock agrees; time in which no process was at it counts.
    /// When the time is up, a plan under way is dropped and the agent answers with what there is. A
    /// tool that runs is bounded by its own timeout.
    pub fn timeout(mut self, limit: Duration, clock: impl Clock) -> Self {
        self.timeout = Some(LoopTimeout { limit, clock: Arc::new(clock) });
        self
    }

    /// The settings of the model calls that make plans, where they differ from the agent's: another
    /// model, for instance.
    pub fn llm(mut self, config: LlmConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Makes plans in the model's place; `None` lets the model make them again.
    pub fn planner(mut self, planner: Option<Arc<dyn Planner>>) -> Self {
        self.planner = planner;
        self
    }

    /// Carries the commands of a round out in the runtime's place; `None` lets the runtime do it
    /// again. The agent has to have [`CommandTool::tool`].
    pub fn executor(mut self, executor: Option<CommandTool>) -> Self {
        self.executor = executor;
        self
    }

    /// Checks the options for an agent.
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

    /// How many steps a turn takes, if every plan can be used.
    fn steps(&self) -> u32 {
        self.max_rounds.max(1).saturating_add(1)
    }
}

/// The tools by which an agent completes, which are no commands.
pub(crate) fn completion_tools(agent: &AgentDefinition) -> Vec<Arc<str>> {
    match agent.completion() {
        Completion::FinishTools(names) => names.clone(),
        Completion::Text | Completion::Native | Completion::Finish => {
            vec![helix_agents_core::tool::FINISH_TOOL.into()]
        }
    }
}
