//! Agents by name: for whoever finds a session in a store and has to go on with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::Agent;
use super::definition::AnyAgent;
use crate::error::{Error, ErrorCode, Result};
use crate::id::SessionId;
use crate::panics::caught;

/// What a factory may look at.
#[derive(Debug, Clone)]
pub struct FactoryContext {
    /// The session that the agent is for.
    pub session: SessionId,
}

type Factory = Arc<dyn Fn(&FactoryContext) -> Result<AnyAgent> + Send + Sync>;

/// Agents by name. Cheap to clone; clones share what is registered.
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
    /// [`ErrorCode::AgentInvalid`] if another agent has the name; [`replace`](Self::replace) is
    /// for that.
    pub fn register<S, O>(&self, agent: &Agent<S, O>) -> Result<()> {
        self.insert(Arc::clone(agent.name()), Entry::Agent(agent.erased()))
    }

    /// Registers a function that makes the agent of that name for a session.
    ///
    /// # Errors
    /// [`ErrorCode::AgentInvalid`] if another agent has the name.
    pub fn register_factory(
        &self,
        name: &str,
        factory: impl Fn(&FactoryContext) -> Result<AnyAgent> + Send + Sync + 'static,
    ) -> Result<()> {
        self.insert(name.into(), Entry::Factory(Arc::new(factory)))
    }

    /// Registers an agent in place of the one that has its name, if any.
    pub fn replace<S, O>(&self, agent: &Agent<S, O>) {
        self.replace_erased(agent.erased());
    }

    /// [`replace`](Self::replace) for an agent whose types are erased.
    pub fn replace_erased(&self, agent: AnyAgent) {
        self.write().insert(Arc::clone(agent.name()), Entry::Agent(agent));
    }

    /// The agent of that name.
    ///
    /// # Errors
    /// [`ErrorCode::AgentNotFound`], naming those that are registered; the factory's, or
    /// [`ErrorCode::CodePanicked`] if it panics.
    pub fn resolve(&self, name: &str, cx: &FactoryContext) -> Result<AnyAgent> {
        let entry = self.read().get(name).cloned();
        match entry {
            Some(Entry::Agent(agent)) => Ok(agent),
            Some(Entry::Factory(factory)) => caught("the agent's factory", || factory(cx))
                .map_err(|panic| panic.into_error().with_context("agent", name))?,
            None => {
                let names = self.names().join(", ");
                let message = format!("no agent of this name is registered; known: [{names}]");
                Err(Error::new(ErrorCode::AgentNotFound, message).with_context("agent", name))
            }
        }
    }

    /// Whether there is an agent of that name, or a function that makes it.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.read().contains_key(name)
    }

    /// The names, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.read().keys().map(ToString::to_string).collect()
    }

    fn insert(&self, name: Arc<str>, entry: Entry) -> Result<()> {
        let mut entries = self.write();
        if entries.contains_key(&name) {
            let message = "an agent of this name is registered already; use `replace`";
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
