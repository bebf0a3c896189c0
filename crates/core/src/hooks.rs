//! Hooks: code of the user's at fixed points of a run.

mod chain;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use chain::{HookChain, changed, follow};

use crate::error::{Error, ErrorRecord};
use crate::event::{Suspension, ToolOutcome};
use crate::id::{CallId, RunId, SessionId};
use crate::json::Json;
use crate::llm::{LlmConfig, LlmResponse};
use crate::message::Message;
use crate::state::{self, Patch};
use crate::tool::ToolError;

/// What a hook returns.
pub type HookResult<T = ()> = Result<T, ToolError>;

/// What a `before_*` hook wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HookDecision<T> {
    /// Go on as planned.
    #[default]
    Continue,
    /// Go on with this instead.
    Change(T),
    /// Do not do it, and say why: to the model for a tool, in the run's error for a model call.
    Refuse(String),
}

/// What `before_llm_call` may change.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LlmChange {
    /// Another system prompt for this call.
    pub prompt: Option<String>,
    /// Other settings for this call.
    pub config: Option<LlmConfig>,
}

/// A call that a hook is told about.
#[derive(Debug, Clone, Copy)]
pub struct ToolCallView<'a> {
    /// The call.
    pub call: &'a CallId,
    /// The tool's name.
    pub tool: &'a str,
    /// The arguments.
    pub input: &'a Json,
}

/// A sub-agent that a hook is told about.
#[derive(Debug, Clone, Copy)]
pub struct SubAgentView<'a> {
    /// The call that it is for.
    pub call: &'a CallId,
    /// Its agent's name.
    pub agent: &'a str,
    /// Its session.
    pub session: &'a SessionId,
    /// The arguments of the call.
    pub input: &'a Json,
}

/// Code of the user's at fixed points of a run. Every method has an empty default.
///
/// # Contract
///
/// - For every tool: `before_tool`, the tool, `on_state_change` (if it changed the state),
///   `on_message`, `after_tool`. The last three run when all calls of the step's phase have
///   settled, per result in call order.
/// - Every call has its `after_tool`, or for a sub-agent its `after_sub_agent`, however it came by its
///   result: it ran, people answered it, it was refused, nobody answered it in time, the run was
///   aborted. `__finish__` is no tool: its result is a message, and `on_agent_complete` has the output.
/// - `before_tool` and `before_llm_call` may change or refuse. If one of them fails, that refuses.
///   Failures of others are logged, and the run goes on.
/// - A change of the state by a hook rides in the append of what the hook belongs to.
/// - Hooks run before that append: once without a crash, at least once across one. The
///   [`key`](HookContext::key) is the same each time, to tell repetitions.
/// - Hooks of the agent run before those of the execution, each in the order in which they were
///   added.
#[async_trait]
pub trait AgentHooks: Send + Sync + 'static {
    /// A turn begins.
    async fn on_agent_start(&self, _cx: &HookContext) -> HookResult {
        Ok(())
    }

    /// A turn has its answer, on every path to it.
    async fn on_agent_complete(&self, _cx: &HookContext, _output: Option<&Json>) -> HookResult {
        Ok(())
    }

    /// A run failed.
    async fn on_agent_fail(&self, _cx: &HookContext, _error: &ErrorRecord) -> HookResult {
        Ok(())
    }

    /// A run is about to end because it has to wait.
    async fn on_agent_suspended(&self, _cx: &HookContext, _on: &Suspension) -> HookResult {
        Ok(())
    }

    /// A run goes on with what another one was suspended on.
    async fn on_agent_resumed(&self, _cx: &HookContext, _from: &Suspension) -> HookResult {
        Ok(())
    }

    /// A model call is about to be made.
    async fn before_llm_call(
        &self,
        _cx: &HookContext,
        _config: &LlmConfig,
    ) -> HookResult<HookDecision<LlmChange>> {
        Ok(HookDecision::Continue)
    }

    /// A model call was made.
    async fn after_llm_call(&self, _cx: &HookContext, _response: &LlmResponse) -> HookResult {
        Ok(())
    }

    /// A tool is about to run. Runs inside the tool's effect, within its timeout.
    async fn before_tool(
        &self,
        _cx: &HookContext,
        _call: ToolCallView<'_>,
    ) -> HookResult<HookDecision<Json>> {
        Ok(HookDecision::Continue)
    }

    /// A call has its result.
    async fn after_tool(
        &self,
        _cx: &HookContext,
        _call: ToolCallView<'_>,
        _outcome: &ToolOutcome,
    ) -> HookResult {
        Ok(())
    }

    /// A sub-agent is about to be begun. If a hook fails here, it is not.
    async fn before_sub_agent(&self, _cx: &HookContext, _call: SubAgentView<'_>) -> HookResult {
        Ok(())
    }

    /// A call of a sub-agent, or one that waited for a companion to its end, has its result.
    async fn after_sub_agent(
        &self,
        _cx: &HookContext,
        _call: SubAgentView<'_>,
        _outcome: &ToolOutcome,
    ) -> HookResult {
        Ok(())
    }

    /// A message is about to be recorded.
    async fn on_message(&self, _cx: &HookContext, _message: &Message) -> HookResult {
        Ok(())
    }

    /// A tool changed the custom state.
    async fn on_state_change(&self, _cx: &HookContext, _patch: &Patch) -> HookResult {
        Ok(())
    }

    /// Text arrives. Must be quick: the stream waits.
    fn on_text_delta(&self, _cx: &HookContext, _delta: &str) {}

    /// Reasoning arrives. Must be quick: the stream waits.
    fn on_thinking(&self, _cx: &HookContext, _content: &str, _complete: bool) {}
}

/// What a hook is handed.
pub struct HookContext {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The turn, from 1.
    pub turn: u32,
    /// The step; 0 outside of steps.
    pub step: u32,
    point: HookPoint,
    key: OnceLock<String>,
    before: Arc<Value>,
    state: Mutex<Arc<Value>>,
}

impl HookContext {
    /// A context for the hooks of one point.
    #[must_use]
    pub fn new(place: &HookPlace, point: impl Into<HookPoint>, state: Arc<Value>) -> Self {
        Self {
            agent: Arc::clone(&place.agent),
            session: place.session.clone(),
            run: place.run.clone(),
            turn: place.turn,
            step: place.step,
            point: point.into(),
            key: OnceLock::new(),
            before: Arc::clone(&state),
            state: Mutex::new(state),
        }
    }

    /// The same whenever the hook runs again for the same thing after a crash.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key
            .get_or_init(|| format!("{}/{}.{}/{}", self.session, self.turn, self.step, self.point))
    }

    /// The custom state.
    ///
    /// # Errors
    /// If it does not fit `S`.
    pub fn state<S: DeserializeOwned>(&self) -> HookResult<S> {
        let state = Arc::clone(&self.lock());
        Ok(S::deserialize(&*state)?)
    }

    /// Changes the custom state; the change is recorded with what the hook belongs to.
    ///
    /// # Errors
    /// [`ErrorCode::StateInvalid`](crate::error::ErrorCode::StateInvalid) if the state does not fit `S`,
    /// or the new one is not JSON, does not read back as an `S` (a NaN is written as null), or is nested
    /// more deeply than [`MAX_DEPTH`](crate::json::MAX_DEPTH). Then nothing is changed.
    pub fn update_state<S>(&self, change: impl FnOnce(&mut S)) -> HookResult
    where
        S: DeserializeOwned + Serialize,
    {
        let mut state = self.lock();
        *state = Arc::new(state::changed(&state, change)?);
        Ok(())
    }

    /// What the hooks changed; for runtimes.
    #[must_use]
    pub fn changes(&self) -> Patch {
        let state = self.lock();
        if Arc::ptr_eq(&self.before, &state) {
            return Patch::default();
        }
        Patch::between(&self.before, &state)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<Value>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for HookContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookContext").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// At which point of a step hooks run. With the place it tells the points of a session apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookPoint {
    /// One that a step has once.
    Once(&'static str),
    /// One of several of a kind, counted from 0.
    Nth(&'static str, usize),
    /// One that each call has.
    Of(&'static str, CallId),
}

impl From<&'static str> for HookPoint {
    fn from(name: &'static str) -> Self {
        Self::Once(name)
    }
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once(name) => f.write_str(name),
            Self::Nth(name, index) => write!(f, "{name}.{index}"),
            Self::Of(name, call) => write!(f, "{name}.{call}"),
        }
    }
}

/// Where in a session hooks run.
#[derive(Debug, Clone)]
pub struct HookPlace {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The turn, from 1.
    pub turn: u32,
    /// The step; 0 outside of steps.
    pub step: u32,
}

/// Logs that a hook failed which has no say in the run. The error's text may repeat content, so it is left out:
/// a hook that wants it in the log of the process writes it there itself.
pub fn log_failure(cx: &HookContext, hook: &'static str, result: HookResult) {
    if let Err(error) = result {
        tracing::warn!(hook, key = cx.key(), code = error.code().as_str(), "hook failed");
    }
}

/// The error of a run whose model call a hook refused. The reason is its detail.
#[must_use]
pub fn refused(reason: &str) -> Error {
    let code = crate::error::ErrorCode::HookRefused;
    Error::new(code, "a hook refused the model call").with_detail(reason)
}

#[cfg(test)]
mod tests;
