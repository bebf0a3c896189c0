//! Sub-agents: agents that another agent calls like tools.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Agent;
use super::definition::AnyAgent;
use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::panics::{Panicked, caught};
use crate::run_options::Input;
use crate::schema::Schema;
use crate::tool::{SUB_AGENT_PREFIX, ToolSpec};

/// The default input of a sub-agent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SubAgentInput {
    /// The task with all the context that is needed: the sub-agent sees nothing else.
    pub message: String,
}

type ToInput = Arc<dyn Fn(&Json) -> Result<Input> + Send + Sync>;

/// An agent that another agent can call like a tool. Each call has its own session with its own
/// state, which ends with the call.
///
/// # Examples
///
/// ```
/// use helix_agents_core::agent::{Agent, SubAgent};
///
/// let critic = Agent::builder("critic")
///     .description("Criticises a text.")
///     .system_prompt("Name the weakest sentence of the text.")
///     .output::<String>()
///     .build()?;
/// let critic = SubAgent::new(&critic).described("Call this before you answer.");
/// let writer = Agent::builder("writer")
///     .system_prompt("Write short texts.")
///     .sub_agent(critic)
///     .build()?;
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
#[derive(Clone)]
pub struct SubAgent {
    agent: AnyAgent,
    tool: Arc<str>,
    description: Arc<str>,
    input: Result<Schema, Arc<Error>>,
    to_input: ToInput,
}

impl SubAgent {
    /// Offers an agent as a sub-agent whose input is one message, see [`SubAgentInput`].
    #[must_use]
    pub fn new<O>(agent: &Agent<O>) -> Self {
        Self {
            agent: agent.erased(),
            tool: format!("{SUB_AGENT_PREFIX}{}", agent.name()).into(),
            description: agent.definition().description().into(),
            input: Schema::of::<SubAgentInput>().map_err(Arc::new),
            to_input: typed(|input: SubAgentInput| Input::from(input.message)),
        }
    }

    /// Sets the type of the arguments that the caller's model writes, and how the sub-agent's input
    /// is built from them.
    #[must_use]
    pub fn input<I>(mut self, to_input: impl Fn(I) -> Input + Send + Sync + 'static) -> Self
    where
        I: DeserializeOwned + JsonSchema,
    {
        self.input = Schema::of::<I>().map_err(Arc::new);
        self.to_input = typed(to_input);
        self
    }

    /// Replaces the description that the caller's model sees.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        self.description = description.trim().into();
        self
    }

    /// Returns the sub-agent's agent.
    #[must_use]
    pub fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// Returns the tool name under which the caller's model calls the sub-agent.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        &self.tool
    }

    /// Builds the sub-agent's input from the call's arguments.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ToolInputInvalid`] if the arguments do not fit,
    /// [`ErrorCode::CodePanicked`] if the user's conversion panics.
    pub fn input_of(&self, arguments: &Json) -> Result<Input> {
        (self.to_input)(arguments)
    }

    /// Checks arguments against the input schema.
    pub(crate) fn validate(&self, arguments: &Json) -> Result<(), Vec<String>> {
        match &self.input {
            Ok(schema) => schema.validate(&arguments.to_value()),
            Err(error) => Err(vec![error.to_string()]),
        }
    }

    pub(crate) fn spec(&self) -> Result<ToolSpec> {
        let schema = self
            .input
            .as_ref()
            .map_err(|error| Error::new(ErrorCode::AgentInvalid, error.message().to_owned()))?;
        Ok(ToolSpec::new(
            Arc::clone(&self.tool),
            Arc::clone(&self.description),
            schema.json().clone(),
        ))
    }

    /// Returns every problem of the definition, one sentence each.
    pub(crate) fn problems(&self) -> Vec<String> {
        let name = self.agent.name();
        let mut problems = Vec::new();
        if self.agent.output_schema().is_none() {
            problems
                .push(format!("sub-agent `{name}` has no output type: its caller waits for one"));
        }
        if self.description.is_empty() {
            problems.push(format!(
                "sub-agent `{name}` needs a description: the model uses it to decide when to call it"
            ));
        }
        if self.tool.len() > 64 {
            problems.push(format!(
                "sub-agent `{name}`: with `{SUB_AGENT_PREFIX}` the name is longer than 64 characters"
            ));
        }
        if let Err(error) = &self.input {
            problems.push(format!("sub-agent `{name}`: {}", error.message()));
        }
        problems
    }
}

impl<O> From<&Agent<O>> for SubAgent {
    fn from(agent: &Agent<O>) -> Self {
        Self::new(agent)
    }
}

impl fmt::Debug for SubAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SubAgent").field(self.agent.name()).finish()
    }
}

fn typed<I: DeserializeOwned>(to_input: impl Fn(I) -> Input + Send + Sync + 'static) -> ToInput {
    Arc::new(move |arguments| match arguments.to_typed::<I>() {
        Ok(input) => {
            caught("the sub-agent's input", || to_input(input)).map_err(Panicked::into_error)
        }
        Err(error) => {
            let message = "the arguments do not match the sub-agent's input type";
            Err(Error::new(ErrorCode::ToolInputInvalid, message).with_detail(error.to_string()))
        }
    })
}
