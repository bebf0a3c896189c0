//! The options that all runtimes share.

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

/// The shortest lease duration. Renewals and their jitter must fit into it.
const MIN_LEASE: Duration = Duration::from_millis(300);

/// The longest lease duration. A session waits this long after its owner crashed.
const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// The options of a runtime that is being built. [`builder_methods!`](crate::builder_methods) sets them.
#[derive(Debug)]
pub struct Settings {
    /// The store of session logs.
    pub store: Option<Arc<dyn StateStore>>,
    /// The store of session streams.
    pub streams: Option<Arc<dyn StreamManager>>,
    /// The LLM adapter that answers model calls.
    pub llm: Option<Arc<dyn LlmAdapter>>,
    /// The registered agents by name.
    pub registry: AgentRegistry,
    /// The clock. Default: tokio's clock.
    pub clock: Option<Arc<dyn Clock>>,
    /// The id source. Default: random ids.
    pub ids: Option<Arc<dyn IdSource>>,
    /// The durability mode, which decides when facts are appended.
    pub durability: Durability,
    /// The lease duration: how long a run counts as owned after its last renewal.
    pub lease: Duration,
    /// How long operations on an unavailable store are retried. Default: two thirds of the lease.
    pub store_retry_timeout: Option<Duration>,
    /// The grace period in which cancelled tools can stop.
    pub grace: Duration,
    /// Whether a session is resumed automatically after an answer to a pending call was submitted.
    pub auto_resume: bool,
    /// The tokio runtime for background tasks. `None`: the runtime of the caller.
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
            store_retry_timeout: None,
            grace: Duration::from_secs(5),
            auto_resume: false,
            tasks_on: None,
        }
    }
}

impl Settings {
    /// Builds the context shared by all runs of the runtime.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if a required option is missing or a value is out of range.
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
        let store_retry_timeout = self.store_retry_timeout.unwrap_or(self.lease * 2 / 3);
        let streams = self.streams.ok_or_else(|| missing("stream manager; call `store`"))?;
        let store =
            RetryingStore::new(store, Arc::clone(&clock), Arc::clone(&ids), store_retry_timeout);
        let stream_wait = StreamWait::new(Arc::clone(&clock), self.lease);
        let streams = RetryingStreams::new(
            streams,
            Arc::clone(&clock),
            Arc::clone(&ids),
            store_retry_timeout,
        );
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

/// Defines the builder methods that all runtimes share, inside an `impl` block of a type with a field
/// `settings` of type [`Settings`].
#[macro_export]
macro_rules! builder_methods {
    () => {
        /// Sets a store that keeps both session logs and streams.
        pub fn store<S>(self, store: S) -> Self
        where
            S: $crate::core::store::StateStore + $crate::core::stream::StreamManager + Clone,
        {
            self.state_store(::std::sync::Arc::new(store.clone()))
                .stream_manager(::std::sync::Arc::new(store))
        }

        /// Sets the store of session logs.
        pub fn state_store(
            mut self,
            store: ::std::sync::Arc<dyn $crate::core::store::StateStore>,
        ) -> Self {
            self.settings.store = Some(store);
            self
        }

        /// Sets the store of session streams.
        pub fn stream_manager(
            mut self,
            streams: ::std::sync::Arc<dyn $crate::core::stream::StreamManager>,
        ) -> Self {
            self.settings.streams = Some(streams);
            self
        }

        /// Sets the LLM adapter that answers model calls.
        pub fn llm(self, llm: impl $crate::core::llm::LlmAdapter) -> Self {
            self.llm_adapter(::std::sync::Arc::new(llm))
        }

        /// Sets the LLM adapter from an existing `Arc`.
        pub fn llm_adapter(
            mut self,
            llm: ::std::sync::Arc<dyn $crate::core::llm::LlmAdapter>,
        ) -> Self {
            self.settings.llm = Some(llm);
            self
        }

        /// Sets the registry, in which the runtime finds agents by name if the caller gives none: in
        /// [`recover`]($crate::core::executor::AgentExecutor::recover),
        /// [`sweep`]($crate::core::executor::AgentExecutor::sweep),
        /// [`abort`]($crate::core::executor::AgentExecutor::abort) and with
        /// [`auto_resume`](Self::auto_resume).
        pub fn registry(mut self, registry: $crate::core::agent::AgentRegistry) -> Self {
            self.settings.registry = registry;
            self
        }

        /// Sets the lease duration: how long a run of this process counts as owned after its last
        /// renewal or append. After a crash, another process can take over the session once the lease
        /// has expired. At least 300 ms and at most a day. Default: 15 s.
        pub fn lease(mut self, lease: ::std::time::Duration) -> Self {
            self.settings.lease = lease;
            self
        }

        /// Sets how long operations on an unavailable store are retried before a run stops, or before
        /// pending stream chunks are dropped. Default: two thirds of the lease, because after that
        /// the lease is lost anyway. See [`RetryingStore`]($crate::core::store::RetryingStore) and
        /// [`RetryingStreams`]($crate::core::stream::RetryingStreams).
        pub fn store_retry_timeout(mut self, store_retry_timeout: ::std::time::Duration) -> Self {
            self.settings.store_retry_timeout = Some(store_retry_timeout);
            self
        }

        /// Sets the grace period: how long a call may keep running after an abort before it is dropped. In
        /// the local and the durable runtime, also how long a shutdown waits for running effects.
        /// Default: 5 s.
        pub fn grace(mut self, grace: ::std::time::Duration) -> Self {
            self.settings.grace = grace;
            self
        }

        /// Sets whether a session is resumed automatically when an answer to one of its pending calls
        /// is submitted through this runtime. The session's agent must then be in the registry. With
        /// `false`, the session continues with the next `resume` or sweep. Default: `false`.
        pub fn auto_resume(mut self, auto_resume: bool) -> Self {
            self.settings.auto_resume = auto_resume;
            self
        }

        /// Sets the tokio runtime whose threads execute runs. Default: the runtime on which `execute`
        /// and `resume` are called.
        pub fn tasks_on(mut self, tasks: $crate::Handle) -> Self {
            self.settings.tasks_on = Some(tasks);
            self
        }

        /// Replaces the clock, for tests.
        pub fn clock(mut self, clock: ::std::sync::Arc<dyn $crate::core::clock::Clock>) -> Self {
            self.settings.clock = Some(clock);
            self
        }

        /// Replaces the id source, for tests.
        pub fn ids(mut self, ids: ::std::sync::Arc<dyn $crate::core::clock::IdSource>) -> Self {
            self.settings.ids = Some(ids);
            self
        }
    };
}
