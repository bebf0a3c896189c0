//! Runs hooks in order and contains their failures.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use helix_agents_core::agent::{AgentDefinition, AnyAgent};
use helix_agents_core::error::ErrorRecord;
use helix_agents_core::event::{Event, RunOutcome, Suspension};
use helix_agents_core::hooks::{
    AgentHooks, HookCall, HookContext, HookDecision, HookResult, HookScope, LlmChange,
    SubAgentView, ToolCallView, log_failure,
};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmConfig, LlmResponse};
use helix_agents_core::message::{Message, UserMessage};
use helix_agents_core::panics::{caught, caught_async};
use helix_agents_core::session::result_message;
use helix_agents_core::step::{CallResult, ResultKind};

/// All hooks of a run, in execution order. The hooks of ancestor sessions come first,
/// then those of the agent, then those of the execution.
#[derive(Clone)]
pub(crate) struct HookChain(Arc<[Arc<dyn AgentHooks>]>);

impl HookChain {
    /// Returns a chain without hooks.
    #[must_use]
    pub(crate) fn none() -> Self {
        Self(Arc::new([]))
    }

    /// Combines the hooks of the ancestor sessions, of the agent and of the execution.
    #[must_use]
    pub(crate) fn new(
        above: &Self,
        agent: &AgentDefinition,
        execution: &[Arc<dyn AgentHooks>],
    ) -> Self {
        Self(above.0.iter().chain(agent.hooks()).chain(execution).cloned().collect())
    }

    /// Returns the hooks of the agents of the ancestor sessions, starting with the root.
    #[must_use]
    pub(crate) fn of_lineage(above: &[AnyAgent]) -> Self {
        Self(above.iter().flat_map(|agent| agent.hooks()).cloned().collect())
    }

    /// Returns `true` if there are no hooks.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs the hooks for the start of a turn.
    pub(crate) async fn agent_start(&self, cx: &HookContext) {
        for hooks in self.0.iter() {
            log_failure(cx, "on_agent_start", contained(|| hooks.on_agent_start(cx)).await);
        }
    }

    /// Runs the hooks for the end of a run. Returns the state change to append to the log.
    pub(crate) async fn ends(
        &self,
        place: &HookScope,
        state: Arc<Value>,
        outcome: &RunOutcome,
    ) -> Option<Event> {
        let cx = HookContext::new(place, "end", state);
        match outcome {
            RunOutcome::Completed { output } => {
                self.agent_complete(&cx, output.as_ref()).await;
                changed(&cx, "on_agent_complete")
            }
            RunOutcome::Failed { error } => {
                self.agent_fail(&cx, error).await;
                changed(&cx, "on_agent_fail")
            }
            RunOutcome::Suspended { on } => {
                self.agent_suspended(&cx, on).await;
                changed(&cx, "on_agent_suspended")
            }
            // No hook is called for an interrupted or aborted run.
            _ => None,
        }
    }

    async fn agent_complete(&self, cx: &HookContext, output: Option<&Json>) {
        for hooks in self.0.iter() {
            log_failure(
                cx,
                "on_agent_complete",
                contained(|| hooks.on_agent_complete(cx, output)).await,
            );
        }
    }

    async fn agent_fail(&self, cx: &HookContext, error: &ErrorRecord) {
        for hooks in self.0.iter() {
            log_failure(cx, "on_agent_fail", contained(|| hooks.on_agent_fail(cx, error)).await);
        }
    }

    async fn agent_suspended(&self, cx: &HookContext, on: &Suspension) {
        for hooks in self.0.iter() {
            log_failure(
                cx,
                "on_agent_suspended",
                contained(|| hooks.on_agent_suspended(cx, on)).await,
            );
        }
    }

    /// Runs the hooks for a run that resumes a suspended one.
    pub(crate) async fn agent_resumed(&self, cx: &HookContext, from: &Suspension) {
        for hooks in self.0.iter() {
            log_failure(
                cx,
                "on_agent_resumed",
                contained(|| hooks.on_agent_resumed(cx, from)).await,
            );
        }
    }

    /// Runs the hooks before a model call and returns their changes. A hook that fails refuses the
    /// call.
    ///
    /// # Errors
    /// Returns the reason for the refusal.
    pub(crate) async fn before_llm_call(
        &self,
        cx: &HookContext,
        config: &LlmConfig,
    ) -> Result<LlmChange, String> {
        let mut change = LlmChange::default();
        for hooks in self.0.iter() {
            let config = change.config.as_ref().unwrap_or(config);
            match contained(|| hooks.before_llm_call(cx, config)).await {
                Ok(HookDecision::Continue) => {}
                Ok(HookDecision::Change(next)) => {
                    change.prompt = next.prompt.or(change.prompt);
                    change.config = next.config.or(change.config);
                }
                Ok(HookDecision::Refuse(reason)) => return Err(reason),
                Err(error) => return Err(error.message().to_owned()),
            }
        }
        Ok(change)
    }

    /// Runs the hooks after a model call.
    pub(crate) async fn after_llm_call(&self, cx: &HookContext, response: &LlmResponse) {
        for hooks in self.0.iter() {
            log_failure(
                cx,
                "after_llm_call",
                contained(|| hooks.after_llm_call(cx, response)).await,
            );
        }
    }

    /// Runs the hooks before a tool and returns the changed arguments, if any. A hook that fails
    /// refuses the call.
    ///
    /// # Errors
    /// Returns the reason for the refusal.
    pub(crate) async fn before_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
    ) -> Result<Option<Json>, String> {
        let mut changed: Option<Json> = None;
        for hooks in self.0.iter() {
            let input = changed.as_ref().unwrap_or(call.input);
            let call = ToolCallView::new(call.call, call.tool, input);
            match contained(|| hooks.before_tool(cx, call)).await {
                Ok(HookDecision::Continue) => {}
                Ok(HookDecision::Change(input)) => changed = Some(input),
                Ok(HookDecision::Refuse(reason)) => return Err(reason),
                Err(error) => return Err(error.message().to_owned()),
            }
        }
        Ok(changed)
    }

    /// Runs the hooks for the result of a call: state change, message and end of the call, in this
    /// order. Returns the state change to append to the log.
    pub(crate) async fn result(
        &self,
        place: &HookScope,
        state: Arc<Value>,
        result: &CallResult,
    ) -> Option<Event> {
        let CallResult { call, finish, input, kind, .. } = result;
        let hook = match kind {
            ResultKind::Tool => "after_tool",
            ResultKind::Child { .. } => "after_sub_agent",
            ResultKind::Finish => "on_message",
        };
        let cx = HookContext::new(place, HookCall::PerCall(hook, call.id.clone()), state);
        let (id, outcome) = (&call.id, &finish.outcome);
        if !finish.state_patch.is_empty() {
            for hooks in self.0.iter() {
                let returned = contained(|| hooks.on_state_change(&cx, &finish.state_patch)).await;
                log_failure(&cx, "on_state_change", returned);
            }
        }
        let mut message = result_message(call, outcome);
        message.attachments.clone_from(&finish.attachments);
        self.message(&cx, &Message::Tool(message)).await;
        for hooks in self.0.iter() {
            let returned = match kind {
                ResultKind::Tool => {
                    let view = ToolCallView::new(id, &call.name, input);
                    contained(|| hooks.after_tool(&cx, view, outcome)).await
                }
                ResultKind::Child { agent, session } => {
                    let view = SubAgentView::new(id, agent, session, input);
                    contained(|| hooks.after_sub_agent(&cx, view, outcome)).await
                }
                ResultKind::Finish => Ok(()),
            };
            log_failure(&cx, hook, returned);
        }
        changed(&cx, hook)
    }

    /// Runs the hooks before a sub-agent is started.
    ///
    /// # Errors
    /// Returns the reason why it is not started.
    pub(crate) async fn before_sub_agent(
        &self,
        cx: &HookContext,
        call: SubAgentView<'_>,
    ) -> Result<(), String> {
        for hooks in self.0.iter() {
            let allowed = contained(|| hooks.before_sub_agent(cx, call)).await;
            allowed.map_err(|error| error.message().to_owned())?;
        }
        Ok(())
    }

    /// Runs the `on_message` hooks for a message.
    pub(crate) async fn message(&self, cx: &HookContext, message: &Message) {
        for hooks in self.0.iter() {
            log_failure(cx, "on_message", contained(|| hooks.on_message(cx, message)).await);
        }
    }

    /// Runs the hooks for the user messages that start a turn. Returns the state changes to append
    /// to the log.
    pub(crate) async fn user_messages(
        &self,
        place: &HookScope,
        state: &Arc<Value>,
        messages: &[UserMessage],
    ) -> Vec<Event> {
        let mut events = Vec::new();
        if self.is_empty() {
            return events;
        }
        let mut state = Arc::clone(state);
        for (index, message) in messages.iter().enumerate() {
            let point = HookCall::Nth("on_message", index);
            let cx = HookContext::new(place, point, Arc::clone(&state));
            self.message(&cx, &Message::User(message.clone())).await;
            let change = changed(&cx, "on_message");
            follow(&mut state, change.as_ref());
            events.extend(change);
        }
        events
    }

    /// Runs the hooks for a piece of text.
    pub(crate) fn text_delta(&self, cx: &HookContext, delta: &str) {
        for hooks in self.0.iter() {
            drop(caught("the hook `on_text_delta`", || hooks.on_text_delta(cx, delta)));
        }
    }

    /// Runs the hooks for a piece of reasoning.
    pub(crate) fn thinking(&self, cx: &HookContext, content: &str, complete: bool) {
        for hooks in self.0.iter() {
            drop(caught("the hook `on_thinking`", || hooks.on_thinking(cx, content, complete)));
        }
    }
}

impl fmt::Debug for HookChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HookChain").field(&self.0.len()).finish()
    }
}

/// Awaits a hook. A panic counts as a failure.
async fn contained<T, F: Future<Output = HookResult<T>>>(
    hook: impl FnOnce() -> F,
) -> HookResult<T> {
    caught_async("the hook", hook).await?
}

/// Applies the state changes of hooks to the state that later hooks see. Hooks run sequentially, so
/// their changes never have to be merged.
pub(crate) fn follow(state: &mut Arc<Value>, change: Option<&Event>) {
    if let Some(Event::StateChanged { patch, .. }) = change {
        patch.apply(Arc::make_mut(state));
    }
}

/// Returns the event that records the state changes of the hooks, if there are any.
#[must_use]
pub(crate) fn changed(cx: &HookContext, by: &str) -> Option<Event> {
    let patch = cx.changes();
    (!patch.is_empty()).then(|| Event::StateChanged { patch, by: by.to_owned() })
}
