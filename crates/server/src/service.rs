//! The state that all handlers share.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helix_agents_core::agent::{AgentRegistry, AnyAgent, FactoryContext};
use helix_agents_core::clock::Clock;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor, RunHandle};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_protocols::ErrorTexts;
use helix_agents_protocols::ai_sdk::{Major, Options};
use helix_agents_runtime::Sessions;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::AccessRules;
use crate::api_error::ApiError;
use crate::auth::{Authorizer, Principal};
use crate::limits::{Limits, Permit, Permits, RateLimiter};
use crate::ownership::listing::owns_at_least;
use crate::redaction::Redaction;

/// The delay after which a client of a server that shuts down asks again, by then another instance.
const RETRY_AFTER_SHUTDOWN: Duration = Duration::from_secs(5);

/// The executor, the store and the limits behind the routes.
///
/// Handlers are functions of it, the [`Principal`] and a decoded request. They hold no state between requests: every
/// request reads the log, so any instance can serve it. The counts of [`Permits`] only limit this process.
pub(crate) struct Service {
    pub(crate) executor: Arc<dyn AgentExecutor>,
    pub(crate) registry: AgentRegistry,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) streams: Arc<dyn StreamManager>,
    pub(crate) sessions: Sessions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) access: AccessRules,
    pub(crate) shows_internal_errors: bool,
    /// The major version of the AI SDK in pages.
    pub(crate) ai_sdk: Major,
    pub(crate) requests: Option<RateLimiter>,
    pub(crate) starts: Option<RateLimiter>,
    pub(crate) open_streams: Arc<Permits>,
    pub(crate) runs: Arc<Permits>,
    /// Cancelled when the server takes no new runs any more.
    pub(crate) draining: CancellationToken,
    /// Cancelled when event streams are broken off.
    pub(crate) closing: CancellationToken,
    /// The requests in progress that change something.
    pub(crate) writes: TaskTracker,
    pub(crate) write_slots: Arc<Semaphore>,
    in_progress: Arc<Mutex<HashSet<(SessionId, RunId)>>>,
    watchers: TaskTracker,
}

/// The parts of a [`Service`] that its builder provides.
pub(crate) struct Parts {
    pub(crate) executor: Arc<dyn AgentExecutor>,
    pub(crate) registry: AgentRegistry,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) streams: Arc<dyn StreamManager>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) access: AccessRules,
    pub(crate) shows_internal_errors: bool,
    pub(crate) ai_sdk: Major,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("executor", &self.executor)
            .field("registry", &self.registry)
            .field("limits", &self.limits)
            .field("authorizer", &self.authorizer)
            .finish_non_exhaustive()
    }
}

impl Service {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { executor, registry, store, streams, clock, limits, authorizer, access, .. } =
            parts;
        let limits = limits.bounded();
        Self {
            write_slots: Arc::new(Semaphore::new(limits.writes.min(Semaphore::MAX_PERMITS))),
            writes: TaskTracker::new(),
            sessions: Sessions::with_streams(Arc::clone(&store), Arc::clone(&streams)),
            requests: limits.requests.map(RateLimiter::new),
            starts: limits.starts.map(RateLimiter::new),
            open_streams: Permits::new(limits.streams_per_principal, limits.streams),
            runs: Permits::new(limits.runs_per_principal, limits.runs),
            shows_internal_errors: parts.shows_internal_errors,
            ai_sdk: parts.ai_sdk,
            draining: CancellationToken::new(),
            closing: CancellationToken::new(),
            in_progress: Arc::default(),
            watchers: TaskTracker::new(),
            executor,
            registry,
            store,
            streams,
            clock,
            limits,
            authorizer,
            access,
        }
    }

    /// Returns the redaction of errors that responses contain.
    pub(crate) fn redaction(&self) -> Redaction {
        Redaction::new(self.shows_internal_errors)
    }

    /// Returns the agent for a session.
    pub(crate) fn agent(&self, name: &str, session: &SessionId) -> Result<AnyAgent, ApiError> {
        if !self.registry.contains(name) {
            // The error of the registry lists the names; `/agents` does so for callers who may read them.
            let message = "no agent with this name is registered";
            return Err(ApiError::new(ErrorCode::AgentNotFound, message));
        }
        Ok(self.registry.resolve(name, &FactoryContext::new(session.clone()))?)
    }

    /// Checks the limits on starting a run, and returns the permit to hold while it is in progress.
    pub(crate) fn admit_run(&self, principal: &Principal) -> Result<Permit, ApiError> {
        self.check_open()?;
        if let Some(starts) = &self.starts {
            let checked = starts.check(principal.id(), self.clock.monotonic());
            let message = "too many runs were started in a short time";
            checked.map_err(|delay| {
                ApiError::new(ErrorCode::RateLimited, message).retry_after(delay)
            })?;
        }
        self.runs
            .acquire(principal.id())
            .ok_or_else(|| ApiError::new(ErrorCode::RateLimited, "too many runs are in progress"))
    }

    /// Returns the permit to hold while an event stream is open.
    pub(crate) fn admit_stream(&self, principal: &Principal) -> Result<Permit, ApiError> {
        self.check_open()?;
        let message = "too many event streams are open";
        let permit = self.open_streams.acquire(principal.id());
        permit.ok_or_else(|| ApiError::new(ErrorCode::RateLimited, message))
    }

    /// Returns the errors whose messages front ends show.
    pub(crate) fn error_texts(&self) -> ErrorTexts {
        if self.shows_internal_errors { ErrorTexts::All } else { ErrorTexts::Own }
    }

    /// Returns the options of messages and chunks for `useChat`.
    pub(crate) fn chat_options(&self) -> Options {
        Options::default().major(self.ai_sdk).error_texts(self.error_texts())
    }

    /// Checks that the owner may have another session.
    pub(crate) async fn check_quota(&self, owner: &str) -> Result<(), ApiError> {
        let Some(limit) = self.limits.sessions_per_principal else { return Ok(()) };
        if !owns_at_least(&*self.store, owner, limit).await? {
            return Ok(());
        }
        let message = format!("the owner has {limit} sessions, which is the maximum; delete some");
        Err(ApiError::new(ErrorCode::SessionLimit, message))
    }

    /// Checks that the server is not shutting down.
    pub(crate) fn check_open(&self) -> Result<(), ApiError> {
        if self.draining.is_cancelled() {
            let message =
                "the server is shutting down; send the request again, to another instance";
            let error = ApiError::new(ErrorCode::ServerStopping, message);
            return Err(error.retry_after(RETRY_AFTER_SHUTDOWN));
        }
        Ok(())
    }

    /// Returns the error of a handler. An executor that a shutdown has closed is one of a server that is shutting down.
    pub(crate) fn handler_error(&self, error: ApiError) -> ApiError {
        match self.check_open() {
            Err(stopping) if error.code() == ErrorCode::Closed => stopping,
            _ => error,
        }
    }

    /// Holds the permit until the run has ended. Further handles of a run that is watched already hold none.
    pub(crate) fn watch_run(&self, handle: RunHandle, permit: Permit) {
        let key = (handle.session().clone(), handle.run().clone());
        let in_progress = Arc::clone(&self.in_progress);
        if !lock(&in_progress).insert(key.clone()) {
            return;
        }
        let closing = self.closing.clone();
        self.watchers.spawn(async move {
            tokio::select! {
                // A run that fails or is taken over is not in progress here either.
                result = handle.result() => drop(result),
                () = closing.cancelled() => {}
            }
            lock(&in_progress).remove(&key);
            drop(permit);
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
