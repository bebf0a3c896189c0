//! The type-erased agent definition.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::companion::{self, Companion, CompanionCall};
use super::sub_agent::SubAgent;
use crate::budget::{Budget, PriceTable};
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::AgentHooks;
use crate::json::Json;
use crate::llm::reply::StepResult;
use crate::llm::{LlmAdapter, LlmConfig};
use crate::message::{Message, SharedMessage, ToolCall};
use crate::schema::Schema;
use crate::tool::{FINISH_TOOL, Tool, ToolSet};

/// A shared, type-erased agent definition, as executors and registries hold it.
pub type AnyAgent = Arc<AgentDefinition>;

/// A user-defined stop condition. A step result for which it returns `true` ends the turn.
pub type StopWhen = Arc<dyn Fn(&StepResult) -> bool + Send + Sync>;

/// A function that computes the system prompt from the custom state.
pub type PromptOfState = Arc<dyn Fn(&Value) -> Result<String> + Send + Sync>;

/// The system prompt of an agent.
#[derive(Clone)]
pub enum Prompt {
    /// A constant prompt, encoded once per agent.
    Fixed(SharedMessage),
    /// A prompt computed from the custom state before each model call.
    OfState(PromptOfState),
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Prompt::Fixed",
            Self::OfState(_) => "Prompt::OfState",
        })
    }
}

/// How a turn of an agent is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// The model's text completes the turn; the agent has no output type.
    Text,
    /// A call of `__finish__` with the output completes the turn.
    Finish,
    /// A call of one of these user-defined tools completes the turn.
    FinishTools(Vec<Arc<str>>),
    /// The provider's structured output completes the turn.
    Native,
}

/// Resource limits of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of steps in one turn. Default 50.
    pub max_steps: u32,
    /// The maximum number of corrections in one turn: messages that tell the model that its answer
    /// does not complete the turn. Default 2.
    pub completion_retries: u32,
    /// The maximum number of consecutive model calls that may fail after the first output of the
    /// reply. Each of them is followed by another model call; one more failure fails the run.
    /// Default 3.
    pub model_failures: u32,
    /// The maximum number of tool calls of one step that run concurrently. The sub-agents of the
    /// step have a separate limit of the same number. Default 8.
    pub tool_concurrency: usize,
    /// The timeout of a tool that sets none itself. Default one minute.
    pub tool_timeout: Duration,
    /// The maximum size of one tool result as JSON, in bytes. Default 1 MiB.
    pub max_result_bytes: usize,
    /// The run fails after this number of consecutive takeovers and retries of a work item that
    /// produced no new result. Default 5.
    pub max_takeovers: u32,
    /// The maximum number of companions of one session. Default 32.
    pub max_companions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_steps: 50,
            completion_retries: 2,
            model_failures: 3,
            tool_concurrency: 8,
            tool_timeout: Duration::from_secs(60),
            max_result_bytes: 1024 * 1024,
            max_takeovers: 5,
            max_companions: 32,
        }
    }
}

/// A type-erased agent definition. Built by [`AgentBuilder`](super::AgentBuilder).
pub struct AgentDefinition {
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) prompt: Prompt,
    pub(crate) requirement: Option<String>,
    pub(crate) tools: Vec<Arc<Tool>>,
    pub(crate) sub_agents: Vec<SubAgent>,
    pub(crate) companions: Vec<Companion>,
    pub(crate) effective_tools: Arc<ToolSet>,
    pub(crate) completion: Completion,
    pub(crate) output: Option<Schema>,
    pub(crate) initial_state: Json,
    pub(crate) check_state: fn(&Value) -> std::result::Result<(), String>,
    pub(crate) llm: LlmConfig,
    pub(crate) adapter: Option<Arc<dyn LlmAdapter>>,
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
    pub(crate) prices: PriceTable,
    pub(crate) hooks: Vec<Arc<dyn AgentHooks>>,
    pub(crate) stop_when: Option<StopWhen>,
}

impl AgentDefinition {
    /// Returns the agent's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the agent's description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the tools that the model sees, including `__finish__`.
    #[must_use]
    pub fn effective_tools(&self) -> &Arc<ToolSet> {
        &self.effective_tools
    }

    /// Returns the user-defined tool with this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        // A linear search: there are few tools, and comparing names is faster than hashing.
        self.tools.iter().find(|tool| *tool.name == *name)
    }

    /// Returns the sub-agent that a call of this tool starts.
    #[must_use]
    pub fn sub_agent(&self, tool: &str) -> Option<&SubAgent> {
        self.sub_agents.iter().find(|child| child.tool_name() == tool)
    }

    /// Returns the agent's companions.
    #[must_use]
    pub fn companions(&self) -> &[Companion] {
        &self.companions
    }

    /// Returns the companion that runs this agent.
    #[must_use]
    pub fn companion(&self, agent: &str) -> Option<&Companion> {
        self.companions.iter().find(|companion| **companion.agent().name() == *agent)
    }

    /// Returns the agent with this name among the sub-agents and companions.
    #[must_use]
    pub fn agent_of_child(&self, name: &str) -> Option<&AnyAgent> {
        let children = self.sub_agents.iter().map(SubAgent::agent);
        let mut all = children.chain(self.companions.iter().map(Companion::agent));
        all.find(|agent| **agent.name() == *name)
    }

    pub(crate) fn has_companion_tool(&self, name: &str) -> bool {
        companion::CompanionTool::find(&self.companions, name).is_some()
    }

    /// Parses a call of a companion tool. Returns `None` for other tools, and a description of the
    /// problem if the arguments are invalid.
    #[must_use]
    pub fn companion_call(&self, call: &ToolCall) -> Option<Result<CompanionCall, String>> {
        companion::parse(&self.companions, &call.name, &call.arguments)
    }

    /// Returns the agent's sub-agents.
    #[must_use]
    pub fn sub_agents(&self) -> &[SubAgent] {
        &self.sub_agents
    }

    /// Returns how a turn is completed.
    #[must_use]
    pub fn completion(&self) -> &Completion {
        &self.completion
    }

    /// Returns the tool that completes a turn if there is exactly one. The model is forced to call
    /// it after a correction. `__finish__` is also forced in the last step that the limits allow.
    #[must_use]
    pub fn completion_tool(&self) -> Option<&str> {
        match &self.completion {
            Completion::Finish => Some(FINISH_TOOL),
            Completion::FinishTools(names) => match names.as_slice() {
                [only] => Some(only),
                _ => None,
            },
            Completion::Text | Completion::Native => None,
        }
    }

    /// Returns the output schema if the agent uses native structured output.
    #[must_use]
    pub fn native_output_schema(&self) -> Option<&Schema> {
        let native = self.completion == Completion::Native;
        self.output.as_ref().filter(|_| native)
    }

    /// Returns the output schema, if the agent has an output type.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Schema> {
        self.output.as_ref()
    }

    /// Returns the settings of the model calls.
    #[must_use]
    pub fn llm(&self) -> &LlmConfig {
        &self.llm
    }

    /// Returns the agent's own model adapter, if its model calls do not go to the runtime's adapter.
    #[must_use]
    pub fn adapter(&self) -> Option<&Arc<dyn LlmAdapter>> {
        self.adapter.as_ref()
    }

    /// Returns the resource limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the default budget of each session of this agent.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns the model prices.
    #[must_use]
    pub fn prices(&self) -> &PriceTable {
        &self.prices
    }

    /// Returns one message for each model without a price, of this agent and of its sub-agents.
    /// Companions are not included; their models are checked when they start.
    #[must_use]
    pub fn price_problems(&self) -> Vec<String> {
        let below = self.sub_agents.iter().flat_map(|child| child.agent().price_problems());
        price_problem(&self.name, &self.llm.model, &self.prices).into_iter().chain(below).collect()
    }

    /// Returns the hooks in execution order.
    #[must_use]
    pub fn hooks(&self) -> &[Arc<dyn AgentHooks>] {
        &self.hooks
    }

    /// Returns the custom state of a new session.
    #[must_use]
    pub fn initial_state(&self) -> &Json {
        &self.initial_state
    }

    /// Returns the system message for a model call.
    ///
    /// # Errors
    /// Returns [`ErrorCode::StateInvalid`] if the prompt is a function of the state and the state
    /// does not fit its type.
    pub fn system_message(&self, state: &Value) -> Result<SharedMessage> {
        match &self.prompt {
            Prompt::Fixed(message) => Ok(message.clone()),
            Prompt::OfState(prompt) => {
                Ok(system_message(&prompt(state)?, self.requirement.as_deref()))
            }
        }
    }

    /// Checks that a recorded state still fits the agent's state type.
    ///
    /// # Errors
    /// Returns [`ErrorCode::StateInvalid`], naming the part that does not fit. The log is not
    /// changed.
    pub fn check_state(&self, state: &Value) -> Result<()> {
        (self.check_state)(state).map_err(|problem| {
            Error::new(
                ErrorCode::StateInvalid,
                format!("the recorded state does not fit the agent's state type: {problem}"),
            )
            .with_context("agent", &self.name)
        })
    }
}

pub(super) fn price_problem(agent: &str, model: &str, prices: &PriceTable) -> Option<String> {
    let message = || {
        format!("agent `{agent}` has no price for its model `{model}`; give it one with `prices`")
    };
    prices.get(model).is_none().then(message)
}

/// Combines the prompt with the section that describes how to return the output, if the agent has
/// an output type.
pub(crate) fn system_message(prompt: &str, requirement: Option<&str>) -> SharedMessage {
    let content = match requirement {
        None => prompt.to_owned(),
        Some(section) if prompt.is_empty() => section.to_owned(),
        Some(section) => format!("{prompt}\n\n{section}"),
    };
    SharedMessage::new(Message::System { content })
}

impl fmt::Debug for AgentDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentDefinition")
            .field("name", &self.name)
            .field("tools", &self.tools)
            .field("completion", &self.completion)
            .field("model", &self.llm.model)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
