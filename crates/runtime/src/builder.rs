//! The methods that the builders of all runtimes share.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::observer::LogObserver;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use tokio::runtime::Handle;

use crate::settings::Settings;

/// The options that the builders of all runtimes share. Each builder adds its own options and the method that builds the
/// runtime. The trait is in the prelude of `helix-agents`.
pub trait RuntimeBuilder: Sized {
    /// Returns the shared settings. This is the only method that a builder implements.
    fn settings(&mut self) -> &mut Settings;

    /// Sets a store that keeps both session logs and streams.
    #[must_use]
    fn store<S>(self, store: S) -> Self
    where
        S: StateStore + StreamManager + Clone,
    {
        self.state_store(Arc::new(store.clone())).stream_manager(Arc::new(store))
    }

    /// Sets the store of session logs.
    #[must_use]
    fn state_store(mut self, store: Arc<dyn StateStore>) -> Self {
        self.settings().store = Some(store);
        self
    }

    /// Sets the store of session streams.
    #[must_use]
    fn stream_manager(mut self, streams: Arc<dyn StreamManager>) -> Self {
        self.settings().streams = Some(streams);
        self
    }

    /// Sets the LLM adapter that answers model calls.
    #[must_use]
    fn llm(self, llm: impl LlmAdapter) -> Self {
        self.llm_adapter(Arc::new(llm))
    }

    /// Sets the LLM adapter from an existing `Arc`.
    #[must_use]
    fn llm_adapter(mut self, llm: Arc<dyn LlmAdapter>) -> Self {
        self.settings().llm = Some(llm);
        self
    }

    /// Sets the registry in which agents are looked up by name. It is used by
    /// [`recover`](helix_agents_core::executor::AgentExecutor::recover),
    /// [`sweep`](helix_agents_core::executor::AgentExecutor::sweep),
    /// [`abort`](helix_agents_core::executor::AgentExecutor::abort) and [`auto_resume`](Self::auto_resume),
    /// for the ancestors of child sessions, and by workers in other processes. If other processes may execute
    /// runs (on DBOS with an executor id, and on Temporal), `execute` and `resume` require the agent in the
    /// registry as well.
    #[must_use]
    fn registry(mut self, registry: AgentRegistry) -> Self {
        self.settings().registry = registry;
        self
    }

    /// Sets the lease duration: how long a run of this process counts as owned after its last
    /// renewal or append. It also limits how long the run needs to notice requests of other
    /// processes, and is the heartbeat timeout on Temporal (at least 2 s). After a crash, another
    /// process can take over the session once the lease has expired. At least 300 ms and at most a
    /// day. Default: 15 s.
    #[must_use]
    fn lease(mut self, lease: Duration) -> Self {
        self.settings().lease = lease;
        self
    }

    /// Sets how long operations on an unavailable store are retried before a run stops, or before
    /// pending stream chunks are dropped. Default: two thirds of the lease, because after that
    /// the lease is lost anyway. See [`RetryingStore`](helix_agents_core::store::RetryingStore) and
    /// [`RetryingStreams`](helix_agents_core::stream::RetryingStreams).
    #[must_use]
    fn store_retry_timeout(mut self, store_retry_timeout: Duration) -> Self {
        self.settings().store_retry_timeout = Some(store_retry_timeout);
        self
    }

    /// Sets the grace period: how long tool calls and waits for children may continue after an
    /// abort. A model call is dropped at once. In the local and the durable runtime, also how long
    /// a shutdown waits for running effects. Default: 5 s.
    #[must_use]
    fn grace(mut self, grace: Duration) -> Self {
        self.settings().grace = grace;
        self
    }

    /// Sets whether a session is resumed automatically when an answer to one of its pending calls
    /// is submitted through this runtime. The session's agent must then be in the registry. With
    /// `false`, the session continues with the next `resume` or sweep. Default: `false`.
    #[must_use]
    fn auto_resume(mut self, auto_resume: bool) -> Self {
        self.settings().auto_resume = auto_resume;
        self
    }

    /// Adds an observer of the events that this process appends.
    #[must_use]
    fn observer(self, observer: impl LogObserver) -> Self {
        self.observers([Arc::new(observer) as Arc<dyn LogObserver>])
    }

    /// Adds observers from existing `Arc`s.
    #[must_use]
    fn observers(mut self, observers: impl IntoIterator<Item = Arc<dyn LogObserver>>) -> Self {
        self.settings().observers.extend(observers);
        self
    }

    /// Sets the tokio runtime for background tasks, and in the local and the durable runtime for
    /// runs. Default: in the local runtime, that of the caller of `execute` or `resume`; in the
    /// durable runtime, that of the caller of `connect`. A Temporal worker executes runs on the
    /// tokio runtime on which it was started.
    #[must_use]
    fn tasks_on(mut self, tasks: Handle) -> Self {
        self.settings().tasks_on = Some(tasks);
        self
    }

    /// Replaces the clock, for tests.
    #[must_use]
    fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.settings().clock = Some(clock);
        self
    }

    /// Replaces the id source, for tests.
    #[must_use]
    fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.settings().ids = Some(ids);
        self
    }
}
