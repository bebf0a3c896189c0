//! The options that all runtimes share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::observer::{LogObserver, Observers};
use helix_agents_core::session::{Durability, SessionCache};
use helix_agents_core::store::{RetryingStore, StateStore};
use helix_agents_core::stream::{RetryingStreams, StreamManager};
use tokio::runtime::Handle;

use crate::clock::{SystemIds, TokioClock};
use crate::context::RuntimeContext;
use crate::stream_wait::StreamWait;
use crate::tasks::Tasks;
use crate::wakeups::Wakeups;

/// The shortest lease duration. A renewal is due after a third of the lease, and must succeed before two thirds have
/// passed.
const MIN_LEASE: Duration = Duration::from_millis(300);

/// The longest lease duration. A session waits this long after its owner crashed.
const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// The options of a runtime that is being built. The methods of [`RuntimeBuilder`](crate::RuntimeBuilder) set them.
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
    /// The durability mode: whether replies and results are appended as they arrive, or once per
    /// step.
    pub durability: Durability,
    /// The lease duration: how long a run counts as owned after its last renewal or append.
    pub lease: Duration,
    /// How long operations on an unavailable store are retried. Default: two thirds of the lease.
    pub store_retry_timeout: Option<Duration>,
    /// The grace period: how long tool calls and waits for children may continue after an abort.
    pub grace: Duration,
    /// Whether a session is resumed automatically after an answer to a pending call was submitted.
    pub auto_resume: bool,
    /// The observers of the events that this process appends.
    pub observers: Vec<Arc<dyn LogObserver>>,
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
            observers: Vec::new(),
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
        let streams = self.streams.ok_or_else(|| {
            missing(
                "stream manager; call `stream_manager`, or `store` with a store that keeps both",
            )
        })?;
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
            observers: Observers::new(self.observers),
            tasks: Tasks::new(self.tasks_on),
            local_runs: Mutex::default(),
            folds: SessionCache::default(),
            runs: Arc::default(),
            wakeups: Wakeups::default(),
            stream_wait,
        }))
    }
}
