//! How a local runtime is put together.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::Durability;
use helix_agents_core::store::{PatientStore, StateStore};
use helix_agents_core::stream::{PatientStreams, StreamManager};

use tokio::runtime::Handle;

use crate::clock::{SystemIds, TokioClock};
use crate::guarantees;
use crate::parts::Parts;
use crate::runtime::LocalRuntime;

/// The shortest lease: renewals and their jitter have to fit into it.
const MIN_LEASE: Duration = Duration::from_millis(300);

/// A local runtime under way. See [`LocalRuntime::builder`].
#[derive(Debug)]
#[must_use = "call `build` to get the runtime"]
pub struct LocalRuntimeBuilder {
    store: Option<Arc<dyn StateStore>>,
    streams: Option<Arc<dyn StreamManager>>,
    llm: Option<Arc<dyn LlmAdapter>>,
    registry: AgentRegistry,
    clock: Option<Arc<dyn Clock>>,
    ids: Option<Arc<dyn IdSource>>,
    durability: Durability,
    lease: Duration,
    patience: Option<Duration>,
    grace: Duration,
    tasks: Option<Handle>,
    auto_resume: bool,
}

impl LocalRuntimeBuilder {
    pub(crate) fn new() -> Self {
        Self {
            store: None,
            streams: None,
            llm: None,
            registry: AgentRegistry::default(),
            clock: None,
            ids: None,
            durability: Durability::default(),
            lease: Duration::from_secs(15),
            patience: None,
            grace: Duration::from_secs(5),
            tasks: None,
            auto_resume: false,
        }
    }

    /// Where logs are kept, and streams, if the store keeps both.
    pub fn store<S: StateStore + StreamManager + Clone>(self, store: S) -> Self {
        self.state_store(Arc::new(store.clone())).stream_manager(Arc::new(store))
    }

    /// Where logs are kept.
    pub fn state_store(mut self, store: Arc<dyn StateStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Where streams are kept.
    pub fn stream_manager(mut self, streams: Arc<dyn StreamManager>) -> Self {
        self.streams = Some(streams);
        self
    }

    /// What answers.
    pub fn llm(self, llm: impl LlmAdapter) -> Self {
        self.llm_adapter(Arc::new(llm))
    }

    /// What answers, as it is shared already.
    pub fn llm_adapter(mut self, llm: Arc<dyn LlmAdapter>) -> Self {
        self.llm = Some(llm);
        self
    }

    /// Agents by name, for [`recover`](helix_agents_core::executor::AgentExecutor::recover).
    pub fn registry(mut self, registry: AgentRegistry) -> Self {
        self.registry = registry;
        self
    }

    /// When facts are appended. Default: as they happen.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long a run of this process counts as alive after its last sign of life; so long does a
    /// session wait after a crash before another process may go on with it. Default 15 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long a store that cannot answer is asked again before a run stops, or before part of what it
    /// shows is given up. Default: two thirds of the lease, for then the lease is lost anyway. See
    /// [`PatientStore`] and [`PatientStreams`].
    pub fn store_patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// How long cancelled tools may take to stop before they are dropped. Default 5 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The tokio runtime whose threads carry runs out. Default: the one that `execute` and
    /// `resume` are called on.
    pub fn tasks_on(mut self, tasks: Handle) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Goes on with a session as soon as an answer to one of its calls was submitted here. Its agent
    /// has to be in the registry. Without this, whoever submits calls `resume`.
    pub fn auto_resume(mut self, auto_resume: bool) -> Self {
        self.auto_resume = auto_resume;
        self
    }

    /// Another clock, for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Another source of ids, for tests.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = Some(ids);
        self
    }

    /// What may be relied on in a runtime that is put together so, and why: one for each of
    /// [`Promise::OF_RUNTIMES`](helix_agents_core::guarantee::Promise::OF_RUNTIMES), in that
    /// order. Without a store yet, as with one that several processes share.
    pub fn guarantees(&self) -> Vec<Guarantee> {
        guarantees::of(self.durability, self.lease, self.store.as_deref())
    }

    /// The runtime.
    ///
    /// # Errors
    /// [`ErrorCode::ConfigInvalid`] if something is missing or out of range.
    pub fn build(self) -> Result<LocalRuntime> {
        let missing =
            |what: &str| Error::new(ErrorCode::ConfigInvalid, format!("the runtime has no {what}"));
        if self.lease < MIN_LEASE {
            return Err(Error::new(ErrorCode::ConfigInvalid, "the lease must be at least 300 ms"));
        }
        let store = self.store.ok_or_else(|| missing("store; call `store`"))?;
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
        let ids = self.ids.unwrap_or_else(|| Arc::new(SystemIds));
        let patience = self.patience.unwrap_or(self.lease * 2 / 3);
        let streams = self.streams.ok_or_else(|| missing("stream manager; call `store`"))?;
        let store = PatientStore::new(store, Arc::clone(&clock), Arc::clone(&ids), patience);
        let streams = PatientStreams::new(streams, Arc::clone(&clock), Arc::clone(&ids), patience);
        Ok(LocalRuntime::new(Parts {
            store: Arc::new(store),
            streams: Arc::new(streams),
            llm: self.llm.ok_or_else(|| missing("model; call `llm`"))?,
            registry: self.registry,
            clock,
            ids,
            durability: self.durability,
            lease: self.lease,
            grace: self.grace,
            tasks: self.tasks,
            auto_resume: self.auto_resume,
            runs: Arc::default(),
        }))
    }
}
