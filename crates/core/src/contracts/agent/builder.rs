//! The agent builder. `build` reports every contradiction of a definition at once.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Agent;
use super::companion::{self, Companion, CompanionMode};
use super::completion::{build_effective_tools, output_requirement};
use super::definition::{
    AgentDefinition, Completion, Limits, Prompt, PromptOfState, StopWhen, price_problem,
    system_message,
};
use super::sub_agent::SubAgent;
use crate::budget::{Budget, PriceTable};
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::AgentHooks;
use crate::json::Json;
use crate::json::misfit::misfit;
use crate::llm::reply::StepResult;
use crate::llm::{LlmAdapter, LlmConfig};
use crate::panics::{Panicked, caught};
use crate::schema::Schema;
use crate::tool::Tool;

/// A builder for an [`Agent`]. Start with [`Agent::builder`].
///
/// # Examples
///
/// ```
/// use helix_agents_core::agent::Agent;
/// use helix_agents_core::budget::Budget;
///
/// let agent = Agent::builder("researcher")
///     .description("Finds facts")
///     .model("openai:gpt-4o-mini")
///     .system_prompt("Search before you answer.")
///     .max_steps(10)
///     .budget(Budget::new().tokens(100_000))
///     .build()?;
/// assert_eq!(agent.definition().limits().max_steps, 10);
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
#[must_use = "call `build` to get the agent"]
pub struct AgentBuilder<O = String> {
    parts: Parts,
    output: PhantomData<fn() -> O>,
}

struct Parts {
    name: String,
    description: String,
    prompt: PromptSource,
    tools: Vec<Tool>,
    sub_agents: Vec<SubAgent>,
    companions: Vec<Companion>,
    output: Option<Result<Schema>>,
    initial_state: serde_json::Result<Json>,
    check_state: fn(&Value) -> Result<(), String>,
    llm: LlmConfig,
    adapter: Option<Arc<dyn LlmAdapter>>,
    limits: Limits,
    budget: Budget,
    prices: PriceTable,
    hooks: Vec<Arc<dyn AgentHooks>>,
    stop_when: Option<StopWhen>,
}

enum PromptSource {
    Missing,
    Text(String),
    OfState(PromptOfState),
}

impl<O> std::fmt::Debug for AgentBuilder<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentBuilder").field("name", &self.parts.name).finish_non_exhaustive()
    }
}

impl AgentBuilder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            parts: Parts {
                name: name.to_owned(),
                description: String::new(),
                prompt: PromptSource::Missing,
                tools: Vec::new(),
                sub_agents: Vec::new(),
                companions: Vec::new(),
                output: None,
                initial_state: Ok(Json::from(Value::Null)),
                check_state: |_| Ok(()),
                llm: LlmConfig::default(),
                adapter: None,
                limits: Limits::default(),
                budget: Budget::new(),
                prices: PriceTable::new(),
                hooks: Vec::new(),
                stop_when: None,
            },
            output: PhantomData,
        }
    }
}

impl<O> AgentBuilder<O> {
    /// Sets the description. Listings show it, and the models of calling agents read it.
    pub fn description(mut self, description: &str) -> Self {
        description.clone_into(&mut self.parts.description);
        self
    }

    /// Sets the system prompt. Required, unless `system_prompt_of` sets it.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.parts.prompt = PromptSource::Text(prompt.into());
        self
    }

    /// Sets the system prompt as a function of the custom state, evaluated before each model call.
    pub fn system_prompt_of<T: DeserializeOwned>(
        mut self,
        prompt: impl Fn(T) -> String + Send + Sync + 'static,
    ) -> Self {
        self.parts.prompt = PromptSource::OfState(Arc::new(move |state| {
            let prompted = caught("the system prompt", || T::deserialize(state).map(&prompt));
            prompted.map_err(Panicked::into_error)?.map_err(|_| {
                let misfit = misfit::<T>(state);
                let message = format!("the prompt's state type does not fit the state: {misfit}");
                Error::new(ErrorCode::StateInvalid, message)
            })
        }));
        self
    }

    /// Sets the type of the custom state, which tools and hooks read and change. A new session
    /// starts with its default value.
    pub fn state<T>(mut self) -> Self
    where
        T: Default + Serialize + DeserializeOwned + JsonSchema,
    {
        self.parts.initial_state = Json::from_serialize(&T::default());
        self.parts.check_state = |state| {
            let read = || T::deserialize(state).map(drop).map_err(|_| misfit::<T>(state));
            caught("the state type", read).map_err(|panic| panic.to_string())?
        };
        self
    }

    /// Adds a tool: a `#[tool]` function, or a [`Tool`] with options.
    pub fn tool(mut self, tool: impl Into<Tool>) -> Self {
        self.parts.tools.push(tool.into());
        self
    }

    /// Adds several tools.
    pub fn tools<T: Into<Tool>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.parts.tools.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Adds an agent that this one can call like a tool. It needs an output type and a description.
    pub fn sub_agent(mut self, child: impl Into<SubAgent>) -> Self {
        self.parts.sub_agents.push(child.into());
        self
    }

    /// Adds a companion. The model starts it, sends it messages and queries its status through
    /// tools with the prefix `companion__`. It needs a description.
    pub fn companion<T>(mut self, child: &Agent<T>, mode: CompanionMode) -> Self {
        self.parts.companions.push(Companion::new(child, mode));
        self
    }

    /// Sets the output type. The model returns the output by calling `__finish__`, which is added
    /// unless there is a finish tool.
    pub fn output<T>(mut self) -> AgentBuilder<T>
    where
        T: DeserializeOwned + JsonSchema,
    {
        self.parts.output = Some(Schema::of::<T>());
        AgentBuilder { parts: self.parts, output: PhantomData }
    }

    /// Sets an output schema that is only known at run time.
    pub fn output_schema(mut self, schema: Value) -> AgentBuilder<Value> {
        self.parts.output = Some(Schema::from_value(schema));
        AgentBuilder { parts: self.parts, output: PhantomData }
    }

    /// Requests the output through the provider's JSON-schema response format instead of
    /// `__finish__`.
    pub fn native_output(mut self) -> Self {
        self.parts.llm.native_output = true;
        self
    }

    /// Asks the provider to constrain `__finish__` to its schema. This is a hint: models without
    /// that feature get the request without it.
    pub fn strict_output(mut self, strict: bool) -> Self {
        self.parts.llm.strict_output = strict;
        self
    }

    /// Sets the model, as `provider:model`.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.parts.llm.model = model.into();
        self
    }

    /// Changes the settings of the model calls.
    pub fn llm(mut self, change: impl FnOnce(&mut LlmConfig)) -> Self {
        change(&mut self.parts.llm);
        self
    }

    /// Sets the agent's own model adapter. The model calls of this agent go to it instead of to the
    /// adapter of the runtime.
    pub fn adapter(mut self, adapter: impl LlmAdapter) -> Self {
        self.parts.adapter = Some(Arc::new(adapter));
        self
    }

    /// Sets the maximum number of steps in one turn. Default 50.
    pub fn max_steps(mut self, steps: u32) -> Self {
        self.parts.limits.max_steps = steps;
        self
    }

    /// Sets the maximum number of consecutive model calls that may fail after the first output of the
    /// reply. Default 3.
    pub fn model_failures(mut self, failures: u32) -> Self {
        self.parts.limits.model_failures = failures;
        self
    }

    /// Sets the default budget of each session of this agent, including its child sessions. A
    /// session that is started or resumed with other limits uses those.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.parts.budget = budget;
        self
    }

    /// Sets the model prices, keyed by the configured model names. A sub-agent has its own table;
    /// clones of a table are cheap.
    pub fn prices(mut self, prices: PriceTable) -> Self {
        self.parts.prices = prices;
        self
    }

    /// Sets the maximum number of corrections in one turn. A correction is a message that tells the
    /// model that its answer does not complete the turn. After the last one, such an answer fails
    /// the run, usually with [`ErrorCode::OutputInvalid`]. Default 2.
    pub fn completion_retries(mut self, retries: u32) -> Self {
        self.parts.limits.completion_retries = retries;
        self
    }

    /// Sets the maximum number of tool calls of one step that run concurrently. The sub-agents of
    /// the step have a separate limit of the same number. A sub-agent that waits for an approval or
    /// a client tool result does not count. Default 8.
    pub fn tool_concurrency(mut self, tools: usize) -> Self {
        self.parts.limits.tool_concurrency = tools;
        self
    }

    /// Sets the timeout of tools that set none themselves. Default one minute.
    pub fn tool_timeout(mut self, timeout: Duration) -> Self {
        self.parts.limits.tool_timeout = timeout;
        self
    }

    /// Sets how many consecutive takeovers of a turn may produce no new result before the run fails
    /// with [`ErrorCode::CrashLoop`]. The last takeover executes nothing, because the call itself
    /// may be what crashes the process. If an external engine retries a work item within a run,
    /// these retries count as well. Runs that resume an ended run and runs that only wait do not
    /// count. Default 5.
    pub fn max_takeovers(mut self, takeovers: u32) -> Self {
        self.parts.limits.max_takeovers = takeovers;
        self
    }

    /// Sets the maximum number of companions of one session. Companions that have ended count,
    /// because the model can still send them messages. A call that would start another one fails
    /// with [`ErrorCode::CompanionLimit`], which the model sees. Default 32.
    pub fn max_companions(mut self, companions: usize) -> Self {
        self.parts.limits.max_companions = companions;
        self
    }

    /// Sets the maximum size of one tool result as JSON, in bytes. The model sees a larger result
    /// as a failure. Default 1 MiB.
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.parts.limits.max_result_bytes = bytes;
        self
    }

    /// Sets a condition on the result of a step. If it returns `true`, the turn ends as completed,
    /// without output. It is called only after steps that end the turn in no other way: by an
    /// answer, an error or a limit. If it panics, the run fails.
    pub fn stop_when(
        mut self,
        condition: impl Fn(&StepResult) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.parts.stop_when = Some(Arc::new(condition));
        self
    }

    /// Adds hooks. They run in the order in which they were added.
    pub fn hooks(mut self, hooks: impl AgentHooks) -> Self {
        self.parts.hooks.push(Arc::new(hooks));
        self
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// Returns [`ErrorCode::AgentInvalid`] with every problem of the definition.
    pub fn build(self) -> Result<Agent<O>> {
        let problems = self.parts.problems();
        if !problems.is_empty() {
            return Err(Error::new(ErrorCode::AgentInvalid, problems.join("; "))
                .with_context("agent", &self.parts.name));
        }
        self.parts.define().map(Agent::new)
    }
}

impl Parts {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(fits) {
            problems.push("the agent's name must be 1 to 64 letters, digits, `_` or `-`".into());
        }
        if matches!(self.prompt, PromptSource::Missing) {
            problems.push("there is no system prompt; call `system_prompt`".into());
        }
        if self.limits.max_steps == 0 || self.limits.tool_concurrency == 0 {
            problems.push("`max_steps` and `tool_concurrency` must be at least 1".into());
        }
        if self.limits.tool_timeout.is_zero() {
            problems.push("`tool_timeout` must be more than zero".into());
        }
        problems.extend(self.budget_problems());
        for (index, tool) in self.tools.iter().enumerate() {
            problems.extend(tool.problems());
            if self.tools.iter().take(index).any(|other| other.name == tool.name) {
                problems.push(format!("there are two tools named `{}`", tool.name));
            }
        }
        for (index, child) in self.sub_agents.iter().enumerate() {
            problems.extend(child.problems());
            let name = child.tool_name();
            if self.sub_agents.iter().take(index).any(|other| other.tool_name() == name) {
                problems.push(format!("there are two sub-agents named `{}`", child.agent().name()));
            }
        }
        for (index, companion) in self.companions.iter().enumerate() {
            problems.extend(companion.problems());
            let name = companion.agent().name();
            if self.companions.iter().take(index).any(|other| other.agent().name() == name) {
                problems.push(format!("there are two companions named `{name}`"));
            }
            if self.sub_agents.iter().any(|child| child.agent().name() == name) {
                problems
                    .push(format!("`{name}` is a sub-agent and a companion; rename one of them"));
            }
        }
        if let Some(Err(error)) = &self.output {
            problems.push(format!("the output type: {}", error.message()));
        }
        if self.llm.native_output && self.output.is_none() {
            problems.push("`native_output` needs an output type".into());
        }
        if self.llm.native_output && self.tools.iter().any(|tool| tool.finish) {
            problems.push("`native_output` and a finish tool exclude each other".into());
        }
        problems.extend(self.state_problems());
        problems
    }

    fn budget_problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = self.budget.problem().map(str::to_owned).into_iter().collect();
        for model in self.prices.invalid_prices() {
            problems.push(format!("the price of `{model}` must be finite and not negative"));
        }
        if self.budget.cost.is_some() {
            problems.extend(price_problem(&self.name, &self.llm.model, &self.prices));
            problems
                .extend(self.sub_agents.iter().flat_map(|child| child.agent().price_problems()));
        }
        problems
    }

    fn state_problems(&self) -> Vec<String> {
        let initial = match &self.initial_state {
            Ok(initial) => initial.to_value(),
            Err(error) => return vec![format!("the default state is not JSON: {error}")],
        };
        let mut problems = Vec::new();
        if let Err(problem) = (self.check_state)(&initial) {
            problems.push(format!("the default state cannot be deserialized again: {problem}"));
        }
        if let PromptSource::OfState(prompt) = &self.prompt
            && let Err(error) = prompt(&initial)
        {
            problems.push(error.message().to_owned());
        }
        problems
    }

    fn define(self) -> Result<AgentDefinition> {
        let output = self.output.transpose()?;
        let finish_tools: Vec<Arc<str>> = self
            .tools
            .iter()
            .filter(|tool| tool.finish)
            .map(|tool| Arc::clone(&tool.name))
            .collect();
        let completion = if !finish_tools.is_empty() {
            Completion::FinishTools(finish_tools)
        } else if output.is_none() {
            Completion::Text
        } else if self.llm.native_output {
            Completion::Native
        } else {
            Completion::Finish
        };
        let sub_agents = self.sub_agents.iter().map(SubAgent::spec);
        let mut children = sub_agents.collect::<Result<Vec<_>>>()?;
        children.extend(companion::specs(&self.companions)?);
        let effective_tools =
            build_effective_tools(&self.tools, children, output.as_ref(), &completion, &self.llm)?;
        let requirement = output_requirement(&completion, output.is_some());
        let prompt = match self.prompt {
            PromptSource::OfState(prompt) => Prompt::OfState(prompt),
            PromptSource::Text(text) => {
                Prompt::Fixed(system_message(&text, requirement.as_deref()))
            }
            PromptSource::Missing => Prompt::Fixed(system_message("", requirement.as_deref())),
        };
        Ok(AgentDefinition {
            name: self.name.into(),
            description: self.description.into(),
            prompt,
            requirement,
            tools: self.tools.into_iter().map(Arc::new).collect(),
            sub_agents: self.sub_agents,
            companions: self.companions,
            effective_tools: Arc::new(effective_tools),
            completion,
            output,
            initial_state: self.initial_state.map_err(|error| {
                Error::new(ErrorCode::AgentInvalid, "the state is not JSON").with_source(error)
            })?,
            check_state: self.check_state,
            llm: self.llm,
            adapter: self.adapter,
            limits: self.limits,
            budget: self.budget,
            prices: self.prices,
            hooks: self.hooks,
            stop_when: self.stop_when,
        })
    }
}
