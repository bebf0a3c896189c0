//! The erased form of an agent.

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
use crate::llm::LlmConfig;
use crate::message::{Message, SharedMessage, ToolCall};
use crate::schema::Schema;
use crate::step::StepResult;
use crate::tool::{FINISH_TOOL, Tool, ToolSet};

/// An agent without its types: what executors and registries hold.
pub type AnyAgent = Arc<AgentDefinition>;

/// A stop condition of the user's.
pub type StopWhen = Arc<dyn Fn(&StepResult) -> bool + Send + Sync>;

/// A prompt as a function of the custom state.
pub type PromptOfState = Arc<dyn Fn(&Value) -> Result<String> + Send + Sync>;

/// A system prompt.
#[derive(Clone)]
pub enum Prompt {
    /// Always the same; encoded once per agent.
    Fixed(SharedMessage),
    /// A function of the custom state, evaluated before each model call.
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

/// How an agent's turn is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// By text: the agent has no output type.
    Text,
    /// By calling `__finish__` with the output.
    Finish,
    /// By one of these tools of the user's.
    FinishTools(Vec<Arc<str>>),
    /// By the provider's own structured output.
    Native,
}

/// What an agent may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Steps of one turn. Default 50.
    pub max_steps: u32,
    /// How often the model is told that its answer does not complete the turn. Default 2.
    pub completion_retries: u32,
    /// How many model calls in a row may fail after they began to deliver. Default 3.
    pub model_failures: u32,
    /// How many tools of one step run at once, and how many of its sub-agents. Default 8.
    pub tool_concurrency: usize,
    /// How long a tool without a timeout of its own may take. Default one minute.
    pub tool_timeout: Duration,
    /// The most bytes of one tool result as JSON. Default 1 MiB.
    pub max_result_bytes: usize,
    /// The most runs in a row that take over from one that stopped, and tries in a row of a part within a
    /// run, without a result in between. Default 5.
    pub max_takeovers: u32,
    /// The most companions of one session. Default 32.
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

/// An agent without its types. Made by [`AgentBuilder`](super::AgentBuilder).
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
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
    pub(crate) prices: PriceTable,
    pub(crate) hooks: Vec<Arc<dyn AgentHooks>>,
    pub(crate) stop_when: Option<StopWhen>,
}

impl AgentDefinition {
    /// The agent's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What it is for.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The tools as the model sees them, `__finish__` included.
    #[must_use]
    pub fn effective_tools(&self) -> &Arc<ToolSet> {
        &self.effective_tools
    }

    /// One of the user's tools.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        // There are few, and this is asked often: comparing beats hashing.
        self.tools.iter().find(|tool| *tool.name == *name)
    }

    /// The sub-agent that this call is for.
    #[must_use]
    pub fn sub_agent(&self, tool: &str) -> Option<&SubAgent> {
        self.sub_agents.iter().find(|child| child.tool_name() == tool)
    }

    /// The agents that stay with it.
    #[must_use]
    pub fn companions(&self) -> &[Companion] {
        &self.companions
    }

    /// The companion of that agent.
    #[must_use]
    pub fn companion(&self, agent: &str) -> Option<&Companion> {
        self.companions.iter().find(|companion| **companion.agent().name() == *agent)
    }

    /// The agent of a child of this one's.
    #[must_use]
    pub fn agent_of_child(&self, name: &str) -> Option<&AnyAgent> {
        let children = self.sub_agents.iter().map(SubAgent::agent);
        let mut all = children.chain(self.companions.iter().map(Companion::agent));
        all.find(|agent| **agent.name() == *name)
    }

    pub(crate) fn has_companion_tool(&self, name: &str) -> bool {
        companion::CompanionTool::find(&self.companions, name).is_some()
    }

    /// What a call of a companion tool asks for, or what is wrong with it; none if it is no such
    /// call.
    #[must_use]
    pub fn companion_call(&self, call: &ToolCall) -> Option<Result<CompanionCall, String>> {
        companion::parse(&self.companions, &call.name, &call.arguments)
    }

    /// The agents that it may call upon.
    #[must_use]
    pub fn sub_agents(&self) -> &[SubAgent] {
        &self.sub_agents
    }

    /// How a turn is completed.
    #[must_use]
    pub fn completion(&self) -> &Completion {
        &self.completion
    }

    /// The one tool that completes a turn, if there is exactly one: what a model that has to hand in
    /// its output is made to call.
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

    /// The schema of a native structured output, if the output is asked for that way.
    #[must_use]
    pub fn native_output_schema(&self) -> Option<&Schema> {
        let native = self.completion == Completion::Native;
        self.output.as_ref().filter(|_| native)
    }

    /// The schema of the output, if the agent has an output type.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Schema> {
        self.output.as_ref()
    }

    /// The settings of its model calls.
    #[must_use]
    pub fn llm(&self) -> &LlmConfig {
        &self.llm
    }

    /// What it may use up.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What each of its sessions may use up, unless the session says otherwise.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What its models cost.
    #[must_use]
    pub fn prices(&self) -> &PriceTable {
        &self.prices
    }

    /// What is missing for costs to be counted, here and in the agents below.
    #[must_use]
    pub fn unpriced(&self) -> Vec<String> {
        let below = self.sub_agents.iter().flat_map(|child| child.agent().unpriced());
        unpriced(&self.name, &self.llm.model, &self.prices).into_iter().chain(below).collect()
    }

    /// Its hooks, in order.
    #[must_use]
    pub fn hooks(&self) -> &[Arc<dyn AgentHooks>] {
        &self.hooks
    }

    /// The custom state of a new session.
    #[must_use]
    pub fn initial_state(&self) -> &Json {
        &self.initial_state
    }

    /// The system message for a model call.
    ///
    /// # Errors
    /// [`ErrorCode::StateInvalid`] if the prompt is a function of the state and the state does not
    /// fit its type.
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
    /// [`ErrorCode::StateInvalid`], naming what does not fit. The log is not touched.
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

pub(super) fn unpriced(agent: &str, model: &str, prices: &PriceTable) -> Option<String> {
    let message = || {
        format!("agent `{agent}` has no price for its model `{model}`; give it one with `prices`")
    };
    prices.get(model).is_none().then(message)
}

/// The prompt and, for an agent that owes an output, the section that says how to hand it in.
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
