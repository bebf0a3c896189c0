//! The options that every runtime has.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::{Durability, SessionCache};
use helix_agents_core::store::{RetryingStore, StateStore};
use helix_agents_core::stream::{RetryingStreams, StreamManager};
use tokio::runtime::Handle;

use crate::clock::{SystemIds, TokioClock};
use crate::context::RuntimeContext;
use crate::stream_wait::StreamWait;
use crate::tasks::Tasks;
use crate::wakeups::Wakeups;

/// The shortest lease: renewals and their jitter have to fit into it.
const MIN_LEASE: Duration = Duration::from_millis(300);

/// The longest lease: so long does a session wait for a process that died.
const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// The options of a runtime under way. [`builder_methods!`](crate::builder_methods) sets them.
#[derive(Debug)]
pub struct Settings {
    /// Where logs are kept.
    pub store: Option<Arc<dyn StateStore>>,
    /// Where streams are kept.
    pub streams: Option<Arc<dyn StreamManager>>,
    /// What answers.
    pub llm: Option<Arc<dyn LlmAdapter>>,
    /// Agents by name.
    pub registry: AgentRegistry,
    /// Another clock than tokio's.
    pub clock: Option<Arc<dyn Clock>>,
    /// Another source of ids than random ones.
    pub ids: Option<Arc<dyn IdSource>>,
    /// When facts are appended.
    pub durability: Durability,
    /// How long a run counts as alive after its last sign of life.
    pub lease: Duration,
    /// How long a store that cannot answer is asked again.
    pub patience: Option<Duration>,
    /// How long cancelled tools may take to stop.
    pub grace: Duration,
    /// Whether a session goes on once an answer was submitted.
    pub auto_resume: bool,
    /// The tokio runtime that its tasks run on. None where they are begun.
    pub tasks_on: Option<Handle>,
}

impl Default for Settings {
    fn default() -> Self {
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
            auto_resume: false,
            tasks_on: None,
        }
    }
}

impl Settings {
    /// What a runtime's runs share.
    ///
    /// # Errors
    /// [`ErrorCode::ConfigInvalid`] if something is missing or out of range.
    pub fn context(self) -> Result<Arc<RuntimeContext>> {
        let missing =
            |what: &str| Error::new(ErrorCode::ConfigInvalid, format!("the runtime has no {what}"));
        if !(MIN_LEASE..=MAX_LEASE).contains(&self.lease) {
            let message = "the lease must be at least 300 ms and at most a day";
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        let store = self.store.ok_or_else(|| missing("store; call `store`"))?;
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
        let ids = self.ids.unwrap_or_else(|| Arc::new(SystemIds));
        let patience = self.patience.unwrap_or(self.lease * 2 / 3);
        let streams = self.streams.ok_or_else(|| missing("stream manager; call `store`"))?;
        let store = RetryingStore::new(store, Arc::clone(&clock), Arc::clone(&ids), patience);
        let stream_wait = StreamWait::new(Arc::clone(&clock), self.lease);
        let streams = RetryingStreams::new(streams, Arc::clone(&clock), Arc::clone(&ids), patience);
        Ok(Arc::new(RuntimeContext {
            store: Arc::new(store),
            streams: Arc::new(streams),
            llm: self.llm.ok_or_else(|| missing("model; call `llm`"))?,
            registry: self.registry,
            clock,
            ids,
            durability: self.durability,
            lease: self.lease,
            grace: self.grace,
            auto_resume: self.auto_resume,
            tasks: Tasks::new(self.tasks_on),
            local_runs: Mutex::default(),
            folds: SessionCache::default(),
            runs: Arc::default(),
            wakeups: Wakeups::default(),
            stream_wait,
        }))
    }
}

/// The methods of a runtime's builder that every runtime's has, for an `impl` of a type with a field
/// `settings` of type [`Settings`].
#[macro_export]
macro_rules! builder_methods {
    () => {
        /// Where logs are kept, and streams, if the store keeps both.
        pub fn store<S>(self, store: S) -> Self
        where
            S: $crate::core::store::StateStore + $crate::core::stream::StreamManager + Clone,
        {
            self.state_store(::std::sync::Arc::new(store.clone()))
                .stream_manager(::std::sync::Arc::new(store))
        }

        /// Where logs are kept.
        pub fn state_store(
            mut self,
            store: ::std::sync::Arc<dyn $crate::core::store::StateStore>,
        ) -> Self {
            self.settings.store = Some(store);
            self
        }

        /// Where streams are kept.
        pub fn stream_manager(
            mut self,
            streams: ::std::sync::Arc<dyn $crate::core::stream::StreamManager>,
        ) -> Self {
            self.settings.streams = Some(streams);
            self
        }

        /// What answers.
        pub fn llm(self, llm: impl $crate::core::llm::LlmAdapter) -> Self {
            self.llm_adapter(::std::sync::Arc::new(llm))
        }

        /// What answers, as it is shared already.
        pub fn llm_adapter(
            mut self,
            llm: ::std::sync::Arc<dyn $crate::core::llm::LlmAdapter>,
        ) -> Self {
            self.settings.llm = Some(llm);
            self
        }

        /// Agents by name, for [`recover`]($crate::core::executor::AgentExecutor::recover).
        pub fn registry(mut self, registry: $crate::core::agent::AgentRegistry) -> Self {
            self.settings.registry = registry;
            self
        }

        /// How long a run of this process counts as alive after its last sign of life; so long does
        /// a session wait after a crash before another process may go on with it. Default 15 s.
        pub fn lease(mut self, lease: ::std::time::Duration) -> Self {
            self.settings.lease = lease;
            self
        }

        /// How long a store that cannot answer is asked again before a run stops, or before part of
        /// what it shows is given up. Default: two thirds of the lease, for then the lease is lost
        /// anyway. See [`RetryingStore`]($crate::core::store::RetryingStore) and
        /// [`RetryingStreams`]($crate::core::stream::RetryingStreams).
        pub fn store_retry_timeout(mut self, patience: ::std::time::Duration) -> Self {
            self.settings.patience = Some(patience);
            self
        }

        /// How long cancelled tools may take to stop before they are dropped. Default 5 s.
        pub fn grace(mut self, grace: ::std::time::Duration) -> Self {
            self.settings.grace = grace;
            self
        }

        /// Goes on with a session as soon as an answer to one of its calls was submitted here. Its
        /// agent has to be in the registry. Without this, whoever submits calls `resume`.
        pub fn auto_resume(mut self, auto_resume: bool) -> Self {
            self.settings.auto_resume = auto_resume;
            self
        }

        /// The tokio runtime whose threads carry runs out. Default: the one that `execute` and
        /// `resume` are called on.
        pub fn tasks_on(mut self, tasks: $crate::Handle) -> Self {
            self.settings.tasks_on = Some(tasks);
            self
        }

        /// Another clock, for tests.
        pub fn clock(mut self, clock: ::std::sync::Arc<dyn $crate::core::clock::Clock>) -> Self {
            self.settings.clock = Some(clock);
            self
        }

        /// Another source of ids, for tests.
        pub fn ids(mut self, ids: ::std::sync::Arc<dyn $crate::core::clock::IdSource>) -> Self {
            self.settings.ids = Some(ids);
            self
        }
    };
}
