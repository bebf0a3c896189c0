//! Hooks: user code that runs at fixed points of a run.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, ErrorRecord};
use crate::event::{Suspension, ToolOutcome};
use crate::id::{CallId, RunId, SessionId};
use crate::json::Json;
use crate::llm::{LlmConfig, LlmResponse};
use crate::message::Message;
use crate::state::{self, Patch};
use crate::tool::ToolError;

/// The return type of a hook.
pub type HookResult<T = ()> = Result<T, ToolError>;

/// The decision of a `before_*` hook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HookDecision<T> {
    /// Continue unchanged.
    #[default]
    Continue,
    /// Continue with this value instead.
    Change(T),
    /// Refuse the operation for this reason. For a tool call, the model sees the reason; for a
    /// model call, the run's error contains it.
    Refuse(String),
}

/// The changes that `before_llm_call` can make.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct LlmChange {
    /// A replacement for the system prompt of this call.
    pub prompt: Option<String>,
    /// Replacement settings for this call.
    pub config: Option<LlmConfig>,
}

impl LlmChange {
    /// Creates a change of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the system prompt of this call.
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// Replaces the settings of this call.
    #[must_use]
    pub fn config(mut self, config: LlmConfig) -> Self {
        self.config = Some(config);
        self
    }
}

/// The tool call that a hook is called for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ToolCallView<'a> {
    /// The id of the call.
    pub call: &'a CallId,
    /// The tool's name.
    pub tool: &'a str,
    /// The call's arguments.
    pub input: &'a Json,
}

impl<'a> ToolCallView<'a> {
    /// Describes a call to its hooks; for runtimes.
    #[must_use]
    pub fn new(call: &'a CallId, tool: &'a str, input: &'a Json) -> Self {
        Self { call, tool, input }
    }
}

/// The sub-agent that a hook is called for.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SubAgentView<'a> {
    /// The id of the call that starts the sub-agent.
    pub call: &'a CallId,
    /// The name of the sub-agent's agent.
    pub agent: &'a str,
    /// The sub-agent's session id.
    pub session: &'a SessionId,
    /// The call's arguments.
    pub input: &'a Json,
}

impl<'a> SubAgentView<'a> {
    /// Describes a sub-agent to its hooks; for runtimes.
    #[must_use]
    pub fn new(call: &'a CallId, agent: &'a str, session: &'a SessionId, input: &'a Json) -> Self {
        Self { call, agent, session, input }
    }
}

/// User code that runs at fixed points of a run. The default of every method does nothing.
///
/// # Examples
///
/// ```
/// use async_trait::async_trait;
/// use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult};
/// use helix_agents_core::json::Json;
///
/// struct PrintOutput;
///
/// #[async_trait]
/// impl AgentHooks for PrintOutput {
///     async fn on_agent_complete(&self, cx: &HookContext, output: Option<&Json>) -> HookResult {
///         println!("{} completed turn {}: {output:?}", cx.agent, cx.turn);
///         Ok(())
///     }
/// }
/// ```
///
/// # Contract
///
/// - A step runs its calls in three phases: tools and sub-agents, concurrently; then finish tools;
///   then companion tools.
/// - For every tool, in this order: `before_tool`, the tool, `on_state_change` (if the tool changed
///   the state), `on_message`, `after_tool`. The last three wait until every call of the phase has
///   a result. They then run result by result, in call order.
/// - `before_tool` runs before each attempt at a call, including retries and attempts in later
///   processes. Its changes apply to that attempt only.
/// - `after_tool` (or `after_sub_agent` for a sub-agent) runs for every call, however the result
///   came about: the call ran, a human or client answered it, it was refused, its deadline passed,
///   or the run was aborted. `__finish__` is not a tool in this sense: its result is a message, and
///   `on_agent_complete` gets the output.
/// - `before_tool` and `before_llm_call` can change or refuse the operation. A failure of one of
///   them counts as a refusal, and a failure of `before_sub_agent` prevents the start. Failures of
///   all other hooks are logged, and the run continues.
/// - The hooks for the start of a turn, for a resumption and for the result of a call that ran are
///   called after the append that records the start, resumption or result. Their state changes are
///   part of the next append. State changes of the other hooks are part of the append of the
///   operation that the hook belongs to.
/// - If no process crashes, each hook is called exactly once (`before_tool`: once for each
///   attempt). After a crash, the run that takes over may call a hook again. The
///   [`key`](HookContext::key) is the same for both calls, so that the hook can detect the
///   repetition.
/// - The hooks of an agent and its execution are also called for its child sessions, before the
///   child's own hooks.
/// - Hooks of the agent run before hooks of the execution, each in the order in which they were
///   added.
#[async_trait]
pub trait AgentHooks: Send + Sync + 'static {
    /// Called when a turn starts.
    async fn on_agent_start(&self, _cx: &HookContext) -> HookResult {
        Ok(())
    }

    /// Called when a turn completes, on every path to completion.
    async fn on_agent_complete(&self, _cx: &HookContext, _output: Option<&Json>) -> HookResult {
        Ok(())
    }

    /// Called when a run fails.
    async fn on_agent_fail(&self, _cx: &HookContext, _error: &ErrorRecord) -> HookResult {
        Ok(())
    }

    /// Called when a run is about to be suspended.
    async fn on_agent_suspended(&self, _cx: &HookContext, _on: &Suspension) -> HookResult {
        Ok(())
    }

    /// Called when a run resumes a suspended one.
    async fn on_agent_resumed(&self, _cx: &HookContext, _from: &Suspension) -> HookResult {
        Ok(())
    }

    /// Called before a model call.
    async fn before_llm_call(
        &self,
        _cx: &HookContext,
        _config: &LlmConfig,
    ) -> HookResult<HookDecision<LlmChange>> {
        Ok(HookDecision::Continue)
    }

    /// Called after a model call.
    async fn after_llm_call(&self, _cx: &HookContext, _response: &LlmResponse) -> HookResult {
        Ok(())
    }

    /// Called before each attempt at a tool call. The time that the hook takes counts towards the
    /// tool's timeout.
    async fn before_tool(
        &self,
        _cx: &HookContext,
        _call: ToolCallView<'_>,
    ) -> HookResult<HookDecision<Json>> {
        Ok(HookDecision::Continue)
    }

    /// Called when a call has its result.
    async fn after_tool(
        &self,
        _cx: &HookContext,
        _call: ToolCallView<'_>,
        _outcome: &ToolOutcome,
    ) -> HookResult {
        Ok(())
    }

    /// Called before a sub-agent is started. If a hook fails here, the sub-agent is not started.
    async fn before_sub_agent(&self, _cx: &HookContext, _call: SubAgentView<'_>) -> HookResult {
        Ok(())
    }

    /// Called when a sub-agent call, or a call that waited for a companion to end, has its result.
    async fn after_sub_agent(
        &self,
        _cx: &HookContext,
        _call: SubAgentView<'_>,
        _outcome: &ToolOutcome,
    ) -> HookResult {
        Ok(())
    }

    /// Called for each user message that starts a turn, each model reply, each correction and each
    /// tool result. It may be called before or after the message is recorded.
    async fn on_message(&self, _cx: &HookContext, _message: &Message) -> HookResult {
        Ok(())
    }

    /// Called when a tool changed the custom state.
    async fn on_state_change(&self, _cx: &HookContext, _patch: &Patch) -> HookResult {
        Ok(())
    }

    /// Called with each piece of text. It must be quick, because it blocks the stream.
    fn on_text_delta(&self, _cx: &HookContext, _delta: &str) {}

    /// Called with each piece of reasoning. It must be quick, because it blocks the stream.
    fn on_thinking(&self, _cx: &HookContext, _content: &str, _complete: bool) {}
}

/// The context of a hook.
pub struct HookContext {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The session id.
    pub session: SessionId,
    /// The run id.
    pub run: RunId,
    /// The turn number, from 1.
    pub turn: u32,
    /// The step number; 0 outside of steps.
    pub step: u32,
    point: HookCall,
    key: OnceLock<String>,
    before: Arc<Value>,
    state: Mutex<Arc<Value>>,
}

impl HookContext {
    /// Creates a context for the hooks of one point.
    #[must_use]
    pub fn new(place: &HookScope, point: impl Into<HookCall>, state: Arc<Value>) -> Self {
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

    /// Returns the idempotency key of the hook. It is the same each time the hook runs for the same
    /// operation after a crash.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key
            .get_or_init(|| format!("{}/{}.{}/{}", self.session, self.turn, self.step, self.point))
    }

    /// Returns the custom state.
    ///
    /// # Errors
    /// Returns an error if the state does not fit `S`.
    pub fn state<S: DeserializeOwned>(&self) -> HookResult<S> {
        let state = Arc::clone(&self.lock());
        Ok(S::deserialize(&*state)?)
    }

    /// Changes the custom state. The change is recorded with the operation that the hook belongs
    /// to.
    ///
    /// # Errors
    /// Returns [`ErrorCode::StateInvalid`](crate::error::ErrorCode::StateInvalid) if the state does
    /// not fit `S`, or if the new state is not JSON, does not read back as an `S` (a NaN is written
    /// as null), or is nested more deeply than [`MAX_DEPTH`](crate::json::MAX_DEPTH). Then nothing
    /// is changed.
    pub fn update_state<S>(&self, change: impl FnOnce(&mut S)) -> HookResult
    where
        S: DeserializeOwned + Serialize,
    {
        let mut state = self.lock();
        *state = Arc::new(state::changed(&state, change)?);
        Ok(())
    }

    /// Returns the state changes of the hooks; for runtimes.
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

/// The identity of a hook call within its step. With the [`HookScope`], it forms the idempotency
/// key of the hook call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookCall {
    /// A point that occurs once per step.
    Once(&'static str),
    /// One of several points of the same kind, counted from 0.
    Nth(&'static str, usize),
    /// A point that occurs once per call.
    PerCall(&'static str, CallId),
}

impl From<&'static str> for HookCall {
    fn from(name: &'static str) -> Self {
        Self::Once(name)
    }
}

impl fmt::Display for HookCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once(name) => f.write_str(name),
            Self::Nth(name, index) => write!(f, "{name}.{index}"),
            Self::PerCall(name, call) => write!(f, "{name}.{call}"),
        }
    }
}

/// The agent, session, run, turn and step of a hook call.
#[derive(Debug, Clone)]
pub struct HookScope {
    /// The agent's name.
    pub agent: Arc<str>,
    /// The session id.
    pub session: SessionId,
    /// The run id.
    pub run: RunId,
    /// The turn number, from 1.
    pub turn: u32,
    /// The step number; 0 outside of steps.
    pub step: u32,
}

/// Logs a hook failure that does not affect the run. The error's text may quote content, so it is
/// not logged; a hook that needs it in the process log has to write it there itself.
pub fn log_failure(cx: &HookContext, hook: &'static str, result: HookResult) {
    if let Err(error) = result {
        tracing::warn!(hook, key = cx.key(), code = error.code().as_str(), "hook failed");
    }
}

/// Returns the error of a run whose model call a hook refused. The reason is the error's detail.
#[must_use]
pub fn refused(reason: &str) -> Error {
    let code = crate::error::ErrorCode::HookRefused;
    Error::new(code, "a hook refused the model call").with_detail(reason)
}

#[cfg(test)]
mod tests;
