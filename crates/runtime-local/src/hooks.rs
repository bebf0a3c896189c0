//! Running hooks in their order, with their failures contained.

use std::sync::Arc;

use helix_agents_core::agent::AgentDefinition;
use helix_agents_core::error::ErrorRecord;
use helix_agents_core::event::{Event, Suspension, ToolOutcome};
use helix_agents_core::hooks::{
    AgentHooks, Before, HookContext, HookPlace, HookPoint, LlmChange, SubAgentView, ToolCallView,
    log_failure,
};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmConfig, LlmResponse};
use helix_agents_core::message::{Message, UserMessage};
use helix_agents_core::state::Patch;
use serde_json::Value;

/// The agent's hooks and then those of the execution.
#[derive(Clone)]
pub(crate) struct Hooks(Arc<[Arc<dyn AgentHooks>]>);

impl Hooks {
    /// No hooks.
    pub(crate) fn none() -> Self {
        Self(Arc::new([]))
    }

    /// Those of the sessions above, of the agent and of the execution, in this order.
    pub(crate) fn new(
        above: &Self,
        agent: &AgentDefinition,
        execution: &[Arc<dyn AgentHooks>],
    ) -> Self {
        Self(above.0.iter().chain(agent.hooks()).chain(execution).cloned().collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) async fn agent_start(&self, cx: &HookContext) {
        for hooks in self.0.iter() {
            log_failure(cx, "on_agent_start", hooks.on_agent_start(cx).await);
        }
    }

    pub(crate) async fn agent_complete(&self, cx: &HookContext, output: Option<&Json>) {
        for hooks in self.0.iter() {
            log_failure(cx, "on_agent_complete", hooks.on_agent_complete(cx, output).await);
        }
    }

    pub(crate) async fn agent_fail(&self, cx: &HookContext, error: &ErrorRecord) {
        for hooks in self.0.iter() {
            log_failure(cx, "on_agent_fail", hooks.on_agent_fail(cx, error).await);
        }
    }

    pub(crate) async fn agent_suspended(&self, cx: &HookContext, on: &Suspension) {
        for hooks in self.0.iter() {
            log_failure(cx, "on_agent_suspended", hooks.on_agent_suspended(cx, on).await);
        }
    }

    pub(crate) async fn agent_resumed(&self, cx: &HookContext, from: &Suspension) {
        for hooks in self.0.iter() {
            log_failure(cx, "on_agent_resumed", hooks.on_agent_resumed(cx, from).await);
        }
    }

    /// What the model call becomes, or why it is refused. A hook that fails refuses.
    pub(crate) async fn before_llm_call(
        &self,
        cx: &HookContext,
        config: &LlmConfig,
    ) -> Result<LlmChange, String> {
        let mut change = LlmChange::default();
        for hooks in self.0.iter() {
            let config = change.config.as_ref().unwrap_or(config);
            match hooks.before_llm_call(cx, config).await {
                Ok(Before::Continue) => {}
                Ok(Before::Change(next)) => {
                    change.prompt = next.prompt.or(change.prompt);
                    change.config = next.config.or(change.config);
                }
                Ok(Before::Refuse(reason)) => return Err(reason),
                Err(error) => return Err(error.message().to_owned()),
            }
        }
        Ok(change)
    }

    pub(crate) async fn after_llm_call(&self, cx: &HookContext, response: &LlmResponse) {
        for hooks in self.0.iter() {
            log_failure(cx, "after_llm_call", hooks.after_llm_call(cx, response).await);
        }
    }

    /// What the arguments become, if they change, or why the call is refused. A hook that fails
    /// refuses.
    pub(crate) async fn before_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
    ) -> Result<Option<Json>, String> {
        let mut changed: Option<Json> = None;
        for hooks in self.0.iter() {
            let input = changed.as_ref().unwrap_or(call.input);
            match hooks.before_tool(cx, ToolCallView { input, ..call }).await {
                Ok(Before::Continue) => {}
                Ok(Before::Change(input)) => changed = Some(input),
                Ok(Before::Refuse(reason)) => return Err(reason),
                Err(error) => return Err(error.message().to_owned()),
            }
        }
        Ok(changed)
    }

    pub(crate) async fn after_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
        outcome: &ToolOutcome,
    ) {
        for hooks in self.0.iter() {
            log_failure(cx, "after_tool", hooks.after_tool(cx, call, outcome).await);
        }
    }

    /// Why a sub-agent is not begun, if it is not.
    pub(crate) async fn before_sub_agent(
        &self,
        cx: &HookContext,
        call: SubAgentView<'_>,
    ) -> Result<(), String> {
        for hooks in self.0.iter() {
            hooks.before_sub_agent(cx, call).await.map_err(|error| error.message().to_owned())?;
        }
        Ok(())
    }

    pub(crate) async fn after_sub_agent(
        &self,
        cx: &HookContext,
        call: SubAgentView<'_>,
        outcome: &ToolOutcome,
    ) {
        for hooks in self.0.iter() {
            log_failure(cx, "after_sub_agent", hooks.after_sub_agent(cx, call, outcome).await);
        }
    }

    pub(crate) async fn message(&self, cx: &HookContext, message: &Message) {
        for hooks in self.0.iter() {
            log_failure(cx, "on_message", hooks.on_message(cx, message).await);
        }
    }

    pub(crate) async fn user_messages(
        &self,
        place: &HookPlace,
        state: &Arc<Value>,
        messages: &[UserMessage],
    ) -> Vec<Event> {
        let mut events = Vec::new();
        if self.is_empty() {
            return events;
        }
        for (index, message) in messages.iter().enumerate() {
            let cx =
                HookContext::new(place, HookPoint::Nth("on_message", index), Arc::clone(state));
            self.message(&cx, &Message::User(message.clone())).await;
            events.extend(changed(&cx, "on_message"));
        }
        events
    }

    pub(crate) async fn state_change(&self, cx: &HookContext, patch: &Patch) {
        for hooks in self.0.iter() {
            log_failure(cx, "on_state_change", hooks.on_state_change(cx, patch).await);
        }
    }

    pub(crate) fn text_delta(&self, cx: &HookContext, delta: &str) {
        for hooks in self.0.iter() {
            hooks.on_text_delta(cx, delta);
        }
    }

    pub(crate) fn thinking(&self, cx: &HookContext, content: &str, complete: bool) {
        for hooks in self.0.iter() {
            hooks.on_thinking(cx, content, complete);
        }
    }
}

/// The event that records what hooks changed, if they did.
pub(crate) fn changed(cx: &HookContext, by: &str) -> Option<Event> {
    let patch = cx.changes();
    (!patch.is_empty()).then(|| Event::StateChanged { patch, by: by.to_owned() })
}
