//! What a tool is handed when it runs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use crate::id::{CallId, RunId, SessionId};
use crate::state::{self, Patch};
use crate::stream::ChunkKind;

/// Where a running tool's progress and custom chunks go. Calls are cheap and never block.
pub trait ToolStream: Send + Sync {
    /// Shows a chunk.
    fn show(&self, kind: ChunkKind);
}

/// What a context is made of: for runtimes, and for tests of tools.
#[expect(missing_debug_implementations, reason = "holds a stream, which has nothing to show")]
pub struct ToolContextConfig {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// A number that is greater for later runs of the session.
    pub fencing_token: u64,
    /// The step.
    pub step: u32,
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The arguments of the model, or of the human who approved the call, as text: for the idempotency
    /// key. What a hook made of them is not meant.
    pub arguments: String,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// How long this try may take.
    pub timeout: Option<Duration>,
    /// Cancelled when the run is aborted or the tool's time is up.
    pub cancel: CancellationToken,
    /// The custom state as the step's phase found it.
    pub state: Arc<Value>,
    /// Where progress goes.
    pub stream: Arc<dyn ToolStream>,
}

/// What a tool did beside returning a result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolEffects {
    /// Its change of the custom state.
    pub state_patch: Patch,
    /// What it recorded with [`ToolContext::record_usage`]: name and amount.
    pub usage: Vec<(String, f64)>,
}

/// What a tool is handed when it runs. Cheap to clone.
#[derive(Clone)]
pub struct ToolContext(Arc<Inner>);

struct Inner {
    parts: ToolContextConfig,
    work: Mutex<Work>,
}

struct Work {
    state: Arc<Value>,
    usage: Vec<(String, f64)>,
}

impl ToolContext {
    /// A context for one try at one call.
    #[must_use]
    pub fn new(parts: ToolContextConfig) -> Self {
        let work = Mutex::new(Work { state: Arc::clone(&parts.state), usage: Vec::new() });
        Self(Arc::new(Inner { parts, work }))
    }

    /// The custom state: as the step's phase found it, with this call's own changes.
    ///
    /// # Errors
    /// If it does not fit `S`.
    pub fn state<S: DeserializeOwned>(&self) -> Result<S, ToolError> {
        let state = Arc::clone(&self.work().state);
        Ok(S::deserialize(&*state)?)
    }

    /// Changes the custom state. The change is recorded with the call's result, so it takes effect
    /// exactly if the result does. Tools that run side by side do not see each other's changes;
    /// they are merged in call order.
    ///
    /// # Errors
    /// [`ErrorCode::StateInvalid`](crate::error::ErrorCode::StateInvalid) if the state does not fit `S`,
    /// or the new one is not JSON, does not read back as an `S` (a NaN is written as null), or is nested
    /// more deeply than [`MAX_DEPTH`](crate::json::MAX_DEPTH). Then nothing is changed.
    pub fn update_state<S>(&self, change: impl FnOnce(&mut S)) -> Result<(), ToolError>
    where
        S: DeserializeOwned + Serialize,
    {
        let mut work = self.work();
        work.state = Arc::new(state::changed(&work.state, change)?);
        Ok(())
    }

    /// Shows a chunk of the tool's own in the stream.
    ///
    /// # Errors
    /// If `data` is not JSON.
    pub fn emit<T: Serialize>(&self, name: &str, data: &T) -> Result<(), ToolError> {
        let data = serde_json::to_string(data)?;
        self.0.parts.stream.show(ChunkKind::Custom { name: name.to_owned(), data });
        Ok(())
    }

    /// Shows how far the tool is; `fraction` lies between 0 and 1.
    pub fn progress(&self, message: impl Into<String>, fraction: Option<f64>) {
        let call = self.0.parts.call.clone();
        self.0.parts.stream.show(ChunkKind::ToolProgress {
            call,
            message: message.into(),
            fraction,
        });
    }

    /// Records something that this call used up, to be found in the log beside the tokens. An
    /// amount that is not a finite number is left out, with a warning in the program's log.
    pub fn record_usage(&self, name: impl Into<String>, amount: f64) {
        let name = name.into();
        if amount.is_finite() {
            self.work().usage.push((name, amount));
        } else {
            tracing::warn!(name, amount, call = %self.call(), "not a finite amount: left out");
        }
    }

    /// The same for every try at this call, in every process, and different for every other call:
    /// hand it to whatever must not act twice. It is made of the arguments of the model, or of the
    /// human who approved the call: a hook that changes them does not change it.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        let parts = &self.0.parts;
        let digest = digest(&parts.arguments);
        format!("{}/{}/{}/{digest}", parts.session, parts.call, parts.tool)
    }

    /// A number that grows with every run of the session, and so with every takeover. It is the time at which
    /// the run started, in milliseconds since 1970 by the store's clock, or one more than that of the run before
    /// if that is greater. A session that is created anew under the id of a deleted one has greater numbers, too,
    /// unless the store's clock went back in between.
    ///
    /// A process that stood still between the last check of its ownership and the call itself still acts with
    /// the smaller number of its own run. A resource that refuses a number
    /// smaller than the greatest it has seen for this [session](Self::session) refuses what such a process does.
    #[must_use]
    pub fn fencing_token(&self) -> u64 {
        self.0.parts.fencing_token
    }

    /// Cancelled when the run is aborted or the tool's time is up. A tool that holds something up
    /// should watch it; a future that is dropped at an await needs nothing.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.parts.cancel
    }

    /// The agent's name.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.0.parts.agent
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.0.parts.session
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.0.parts.run
    }

    /// The step.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.0.parts.step
    }

    /// The call.
    #[must_use]
    pub fn call(&self) -> &CallId {
        &self.0.parts.call
    }

    /// Which try this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.parts.attempt
    }

    /// How long this try may take.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.0.parts.timeout
    }

    /// What was done beside returning a result; for runtimes.
    #[must_use]
    pub fn effects(&self) -> ToolEffects {
        let work = self.work();
        let before = &self.0.parts.state;
        let state_patch = if Arc::ptr_eq(before, &work.state) {
            Patch::default()
        } else {
            Patch::between(before, &work.state)
        };
        ToolEffects { state_patch, usage: work.usage.clone() }
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

/// A digest of arguments: the same text, the same digest.
pub(crate) fn digest(arguments: &str) -> String {
    let digest = Sha256::digest(arguments.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
