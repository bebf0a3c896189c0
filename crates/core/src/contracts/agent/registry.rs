//! A registry of agents by name, for processes that resume sessions they find in a store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::Agent;
use super::definition::AnyAgent;
use crate::error::{Error, ErrorCode, Result};
use crate::id::SessionId;
use crate::panics::caught;

/// The context that is passed to an agent factory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FactoryContext {
    /// The session that the agent is built for.
    pub session: SessionId,
}

impl FactoryContext {
    /// Creates the context for a session.
    #[must_use]
    pub const fn new(session: SessionId) -> Self {
        Self { session }
    }
}

type Factory = Arc<dyn Fn(&FactoryContext) -> Result<AnyAgent> + Send + Sync>;

/// A registry of agents by name. Cheap to clone; clones share their entries.
#[derive(Clone, Default)]
pub struct AgentRegistry {
    entries: Arc<RwLock<BTreeMap<Arc<str>, Entry>>>,
}

#[derive(Clone)]
enum Entry {
    Agent(AnyAgent),
    Factory(Factory),
}

impl AgentRegistry {
    /// Registers an agent under its name.
    ///
    /// # Errors
    /// Returns [`ErrorCode::AgentInvalid`] if another agent has the name. Use
    /// [`replace`](Self::replace) to override it.
    pub fn register<O>(&self, agent: &Agent<O>) -> Result<()> {
        self.insert(Arc::clone(&agent.definition().name), Entry::Agent(agent.erased()))
    }

    /// Registers a factory that builds the agent with this name for a session.
    ///
    /// # Errors
    /// Returns [`ErrorCode::AgentInvalid`] if another agent has the name.
    pub fn register_factory(
        &self,
        name: &str,
        factory: impl Fn(&FactoryContext) -> Result<AnyAgent> + Send + Sync + 'static,
    ) -> Result<()> {
        self.insert(name.into(), Entry::Factory(Arc::new(factory)))
    }

    /// Registers an agent, replacing the one with the same name, if any.
    pub fn replace<O>(&self, agent: &Agent<O>) {
        self.replace_erased(agent.erased());
    }

    /// Does the same as [`replace`](Self::replace) for a type-erased agent.
    pub fn replace_erased(&self, agent: AnyAgent) {
        self.write().insert(Arc::clone(agent.name()), Entry::Agent(agent));
    }

    /// Returns the agent with this name.
    ///
    /// # Errors
    /// Returns [`ErrorCode::AgentNotFound`], listing the registered names; the factory's error, or
    /// [`ErrorCode::CodePanicked`] if it panics.
    pub fn resolve(&self, name: &str, cx: &FactoryContext) -> Result<AnyAgent> {
        let entry = self.read().get(name).cloned();
        match entry {
            Some(Entry::Agent(agent)) => Ok(agent),
            Some(Entry::Factory(factory)) => caught("the agent's factory", || factory(cx))
                .map_err(|panic| panic.into_error().with_context("agent", name))?,
            None => {
                let names = self.names().join(", ");
                let message = format!("no agent with this name is registered; known: [{names}]");
                Err(Error::new(ErrorCode::AgentNotFound, message).with_context("agent", name))
            }
        }
    }

    /// Returns `true` if an agent or a factory is registered under this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.read().contains_key(name)
    }

    /// Returns the registered names in sorted order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.read().keys().map(ToString::to_string).collect()
    }

    fn insert(&self, name: Arc<str>, entry: Entry) -> Result<()> {
        let mut entries = self.write();
        if entries.contains_key(&name) {
            let message = "an agent with this name is already registered; use `replace`";
            return Err(Error::new(ErrorCode::AgentInvalid, message).with_context("agent", name));
        }
        entries.insert(name, entry);
        Ok(())
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Arc<str>, Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<Arc<str>, Entry>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AgentRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AgentRegistry").field(&self.names()).finish()
    }
}
