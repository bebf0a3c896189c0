//! Agent definitions. An agent consists of plain data and functions; an executor runs it.

mod builder;
mod companion;
pub(crate) mod completion;
mod definition;
mod registry;
mod sub_agent;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

pub use builder::AgentBuilder;
pub use companion::{Companion, CompanionCall, CompanionCommand, CompanionMode, is_companion_name};
pub use completion::finish_arguments;
pub use definition::{
    AgentDefinition, AnyAgent, Completion, Limits, Prompt, PromptOfState, StopWhen,
};
pub use registry::{AgentRegistry, FactoryContext};
pub use sub_agent::{SubAgent, SubAgentInput};

/// An agent definition whose output has the type `O`.
///
/// Cheap to clone. Executors and registries hold the erased form, [`AnyAgent`]. Values are
/// converted between JSON and these types only at the API boundary.
///
/// # Examples
///
/// ```
/// use helix_agents_core::agent::Agent;
///
/// let agent = Agent::builder("assistant")
///     .model("openai:gpt-4o-mini")
///     .system_prompt("Answer in one sentence.")
///     .build()?;
/// assert_eq!(agent.name(), "assistant");
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
pub struct Agent<O = String> {
    definition: AnyAgent,
    output: PhantomData<fn() -> O>,
}

impl Agent {
    /// Starts the definition of an agent with this name.
    pub fn builder(name: &str) -> AgentBuilder {
        AgentBuilder::new(name)
    }
}

impl<O> Agent<O> {
    pub(crate) fn new(definition: AgentDefinition) -> Self {
        Self { definition: Arc::new(definition), output: PhantomData }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Returns the definition: all settings of the agent, without its output type.
    #[must_use]
    pub fn definition(&self) -> &AgentDefinition {
        &self.definition
    }

    /// Returns the type-erased agent.
    #[must_use]
    pub fn erased(&self) -> AnyAgent {
        Arc::clone(&self.definition)
    }
}

impl<O> Clone for Agent<O> {
    fn clone(&self) -> Self {
        Self { definition: self.erased(), output: PhantomData }
    }
}

impl<O> fmt::Debug for Agent<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.fmt(f)
    }
}

#[cfg(test)]
mod tests;
