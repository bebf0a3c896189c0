//! Agent definitions. An agent consists of plain data and functions; an executor runs it.

mod builder;
mod companion;
mod definition;
mod registry;
mod sub_agent;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

pub use builder::AgentBuilder;
pub use companion::{Companion, CompanionCall, CompanionCommand, CompanionMode, is_companion_name};
pub use definition::{
    AgentDefinition, AnyAgent, Completion, Limits, Prompt, PromptOfState, StopWhen,
};
pub use registry::{AgentRegistry, FactoryContext};
pub use sub_agent::{SubAgent, SubAgentInput};

/// A typed agent definition: `S` is the custom state, `O` the output.
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
/// assert_eq!(&**agent.name(), "assistant");
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
pub struct Agent<S = (), O = String> {
    definition: AnyAgent,
    types: PhantomData<fn() -> (S, O)>,
}

impl Agent {
    /// Starts the definition of an agent with this name.
    pub fn builder(name: &str) -> AgentBuilder {
        AgentBuilder::new(name)
    }
}

impl<S, O> Agent<S, O> {
    pub(crate) fn new(definition: AgentDefinition) -> Self {
        Self { definition: Arc::new(definition), types: PhantomData }
    }

    /// Returns the type-erased agent.
    #[must_use]
    pub fn erased(&self) -> AnyAgent {
        Arc::clone(&self.definition)
    }
}

impl<S, O> Clone for Agent<S, O> {
    fn clone(&self) -> Self {
        Self { definition: self.erased(), types: PhantomData }
    }
}

impl<S, O> Deref for Agent<S, O> {
    type Target = AgentDefinition;

    fn deref(&self) -> &AgentDefinition {
        &self.definition
    }
}

impl<S, O> fmt::Debug for Agent<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.fmt(f)
    }
}

#[cfg(test)]
mod tests;
