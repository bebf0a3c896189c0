//! The context of a running tool.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use crate::contracts::stream::ChunkKind;
use crate::id::{CallId, RunId, SessionId};
use crate::message::Media;
use crate::state::{self, Patch};
use crate::trace::TraceParent;

/// The destination of a running tool's progress and custom chunks. Calls are cheap and never block.
pub trait ToolStream: Send + Sync {
    /// Writes a chunk to the stream.
    fn show(&self, kind: ChunkKind);
}

/// The data of a [`ToolContext`]; for runtimes, and for tests of tools.
#[expect(missing_debug_implementations, reason = "holds a stream, which has nothing to show")]
pub struct ToolContextConfig {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The session id.
    pub session: SessionId,
    /// The run id.
    pub run: RunId,
    /// The fencing token, which is greater for later runs of the session.
    pub fencing_token: u64,
    /// The step number.
    pub step: u32,
    /// The id of the call.
    pub call: CallId,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The arguments as text, from the model or from the human who approved the call. The
    /// idempotency key is derived from them, so changes by a hook are not included.
    pub arguments: String,
    /// The attempt number, from 1.
    pub attempt: u32,
    /// The timeout of this attempt.
    pub timeout: Option<Duration>,
    /// Cancelled when the run is aborted or the timeout expires.
    pub cancel: CancellationToken,
    /// The custom state at the start of the step's phase.
    pub state: Arc<Value>,
    /// The destination of progress and custom chunks.
    pub stream: Arc<dyn ToolStream>,
    /// The trace of the call's turn, with the span of the call as the parent. `None` outside of a run.
    pub trace: Option<TraceParent>,
}

/// The side effects of a tool call in addition to its result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolEffects {
    /// The change of the custom state.
    pub state_patch: Patch,
    /// Names and amounts recorded with [`ToolContext::record_usage`].
    pub usage: Vec<(String, f64)>,
    /// The files added with [`ToolContext::attach`].
    pub attachments: Vec<Media>,
}

/// The context of a running tool. Cheap to clone.
///
/// # Examples
///
/// ```
/// use helix_agents_core::tool::{ToolContext, ToolError};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Notes {
///     notes: Vec<String>,
/// }
///
/// async fn note(text: String, cx: &ToolContext) -> Result<usize, ToolError> {
///     cx.progress("saving", None);
///     cx.update_state(|state: &mut Notes| state.notes.push(text))?;
///     Ok(cx.state::<Notes>()?.notes.len())
/// }
/// ```
#[derive(Clone)]
pub struct ToolContext(Arc<Inner>);

struct Inner {
    parts: ToolContextConfig,
    work: Mutex<Work>,
}

struct Work {
    state: Arc<Value>,
    usage: Vec<(String, f64)>,
    attachments: Vec<Media>,
}

impl ToolContext {
    /// Creates the context of one attempt at a call.
    #[must_use]
    pub fn new(parts: ToolContextConfig) -> Self {
        let state = Arc::clone(&parts.state);
        let work = Mutex::new(Work { state, usage: Vec::new(), attachments: Vec::new() });
        Self(Arc::new(Inner { parts, work }))
    }

    /// Returns the custom state from before the concurrent calls of this step started, with this
    /// call's own changes and those of its `before_tool` hooks. A finish tool also sees the changes
    /// of the calls that ran before it.
    ///
    /// # Errors
    /// Returns an error if the state does not fit `S`.
    pub fn state<S: DeserializeOwned>(&self) -> Result<S, ToolError> {
        let state = Arc::clone(&self.work().state);
        Ok(S::deserialize(&*state)?)
    }

    /// Changes the custom state. The change is recorded together with the call's result. Tools that
    /// run concurrently do not see each other's changes; the changes are merged in call order.
    ///
    /// # Errors
    /// Returns [`ErrorCode::StateInvalid`](crate::error::ErrorCode::StateInvalid) if the state does
    /// not fit `S`, or if the new state is not JSON, does not read back as an `S` (a NaN is written
    /// as null), or is nested more deeply than [`MAX_DEPTH`](crate::json::MAX_DEPTH). Then nothing
    /// is changed.
    pub fn update_state<S>(&self, change: impl FnOnce(&mut S)) -> Result<(), ToolError>
    where
        S: DeserializeOwned + Serialize,
    {
        let mut work = self.work();
        work.state = Arc::new(state::changed(&work.state, change)?);
        Ok(())
    }

    /// Returns the trace of the call's turn with the span of this call as the parent. A tool that creates spans of its own,
    /// or sends a `traceparent` header, passes it on. The span of the call itself is exported once its result is recorded.
    /// `None` outside of a run.
    #[must_use]
    pub fn trace_parent(&self) -> Option<TraceParent> {
        self.0.parts.trace
    }

    /// Writes a custom chunk to the stream.
    ///
    /// # Errors
    /// Returns an error if `data` cannot be written as JSON.
    pub fn emit<T: Serialize>(&self, name: &str, data: &T) -> Result<(), ToolError> {
        let data = serde_json::to_string(data)?;
        self.0.parts.stream.show(ChunkKind::Custom { name: name.to_owned(), data });
        Ok(())
    }

    /// Reports progress; `fraction` is between 0 and 1.
    pub fn progress(&self, message: impl Into<String>, fraction: Option<f64>) {
        let call = self.0.parts.call.clone();
        self.0.parts.stream.show(ChunkKind::ToolProgress {
            call,
            message: message.into(),
            fraction,
        });
    }

    /// Records usage of this call in the log, next to the tokens. An amount that is not a finite
    /// number is dropped with a warning in the process log.
    pub fn record_usage(&self, name: impl Into<String>, amount: f64) {
        let name = name.into();
        if amount.is_finite() {
            self.work().usage.push((name, amount));
        } else {
            tracing::warn!(name, amount, call = %self.call(), "not a finite amount: dropped");
        }
    }

    /// Adds an image or another file to the result of this call, for the model to read. It is recorded with the
    /// result. A model that cannot read the file gets a note instead.
    pub fn attach(&self, media: Media) {
        self.work().attachments.push(media);
    }

    /// Returns the idempotency key. It is the same for every attempt at this call, in every
    /// process, and different for every other call. Pass it to services that must not act twice. It
    /// is derived from the arguments of the model, or of the human who approved the call; changes
    /// by a hook do not affect it.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        let parts = &self.0.parts;
        let digest = digest(&parts.arguments);
        format!("{}/{}/{}/{digest}", parts.session, parts.call, parts.tool)
    }

    /// Returns the fencing token, a number that grows with every run of the session, and so with
    /// every takeover. It is the start time of the run in milliseconds since 1970 by the store's
    /// clock, or one more than the token of the previous run if that is greater. A session that is
    /// created again under the id of a deleted one also has greater tokens, unless the store's
    /// clock went back in between.
    ///
    /// A process that was paused between its last ownership check and the call itself still uses
    /// the smaller token of its own run. A resource that refuses tokens smaller than the greatest
    /// it has seen for this [session](Self::session) rejects the actions of such a process.
    #[must_use]
    pub fn fencing_token(&self) -> u64 {
        self.0.parts.fencing_token
    }

    /// Returns a token that is cancelled when the run is aborted or the timeout expires. Tools that
    /// block or spawn work should watch it. Other tools can ignore it: their future is dropped at
    /// its next await point.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.parts.cancel
    }

    /// Returns the agent's name.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.0.parts.agent
    }

    /// Returns the session id.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.0.parts.session
    }

    /// Returns the run id.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.0.parts.run
    }

    /// Returns the step number.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.0.parts.step
    }

    /// Returns the id of the call.
    #[must_use]
    pub fn call(&self) -> &CallId {
        &self.0.parts.call
    }

    /// Returns the attempt number, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.parts.attempt
    }

    /// Returns the timeout of this attempt.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.0.parts.timeout
    }

    /// Returns the side effects of the call; for runtimes.
    #[must_use]
    pub fn effects(&self) -> ToolEffects {
        let work = self.work();
        let before = &self.0.parts.state;
        let state_patch = if Arc::ptr_eq(before, &work.state) {
            Patch::default()
        } else {
            Patch::between(before, &work.state)
        };
        ToolEffects {
            state_patch,
            usage: work.usage.clone(),
            attachments: work.attachments.clone(),
        }
    }

    fn work(&self) -> std::sync::MutexGuard<'_, Work> {
        self.0.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = &self.0.parts;
        f.debug_struct("ToolContext")
            .field("session", &parts.session)
            .field("run", &parts.run)
            .field("call", &parts.call)
            .field("attempt", &parts.attempt)
            .finish_non_exhaustive()
    }
}

/// Returns a digest of the arguments. Equal texts have equal digests.
pub(crate) fn digest(arguments: &str) -> String {
    let digest = Sha256::digest(arguments.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
