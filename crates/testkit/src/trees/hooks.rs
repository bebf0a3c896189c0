//! Records of hook calls.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::error::ErrorRecord;
use helix_agents_core::event::{Suspension, ToolOutcome};
use helix_agents_core::hooks::{
    AgentHooks, HookContext, HookDecision, HookResult, SubAgentView, ToolCallView,
};
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::llm::LlmResponse;
use helix_agents_core::message::Message;
use helix_agents_core::state::Patch;
use serde::{Deserialize, Serialize};

use super::life::RunProcesses;
use super::notes::Records;

/// The hooks of a tool call, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Hook {
    /// The hook before a call.
    BeforeTool,
    /// The hook for a call that changed the state.
    OnStateChange,
    /// The hook for a call result that is in the transcript.
    OnMessage,
    /// The hook after a call.
    AfterTool,
}

/// One call of a hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookCall {
    /// The hook that was called.
    pub hook: Hook,
    /// The session of the tool call.
    pub session: SessionId,
    /// The run that called the hook.
    pub run: RunId,
    /// The tool call.
    pub call: CallId,
}

/// The hooks of the root agent, which are also called for the sessions below it.
pub(super) struct Listener {
    pub(super) hook_calls: Arc<Records<HookCall>>,
    pub(super) lives: RunProcesses,
}

impl Listener {
    async fn note(&self, cx: &HookContext, hook: Hook, call: &CallId) {
        let (session, run, call) = (cx.session.clone(), cx.run.clone(), call.clone());
        self.hook_calls.note(HookCall { hook, session, run, call });
        self.lives.linger(&cx.run).await;
    }

    /// Delays the hook if the hooks of the process are slow.
    async fn delay(&self, cx: &HookContext) -> HookResult {
        self.lives.delay_hook(&cx.run, cx.key()).await;
        Ok(())
    }
}

#[async_trait]
impl AgentHooks for Listener {
    async fn on_agent_start(&self, cx: &HookContext) -> HookResult {
        self.delay(cx).await
    }

    async fn on_agent_complete(&self, cx: &HookContext, _: Option<&Json>) -> HookResult {
        self.delay(cx).await
    }

    async fn on_agent_fail(&self, cx: &HookContext, _: &ErrorRecord) -> HookResult {
        self.delay(cx).await
    }

    async fn on_agent_suspended(&self, cx: &HookContext, _: &Suspension) -> HookResult {
        self.delay(cx).await
    }

    async fn on_agent_resumed(&self, cx: &HookContext, _: &Suspension) -> HookResult {
        self.delay(cx).await
    }

    async fn after_llm_call(&self, cx: &HookContext, _: &LlmResponse) -> HookResult {
        self.delay(cx).await
    }

    async fn before_sub_agent(&self, cx: &HookContext, _: SubAgentView<'_>) -> HookResult {
        self.delay(cx).await
    }

    async fn before_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
    ) -> HookResult<HookDecision<Json>> {
        self.note(cx, Hook::BeforeTool, call.call).await;
        Ok(HookDecision::Continue)
    }

    async fn on_state_change(&self, cx: &HookContext, _: &Patch) -> HookResult {
        // The hook key contains the name of the call.
        if let Some((_, call)) = cx.key().split_once("/after_tool.") {
            self.note(cx, Hook::OnStateChange, &CallId::from(call)).await;
        }
        Ok(())
    }

    async fn on_message(&self, cx: &HookContext, message: &Message) -> HookResult {
        if let Message::Tool(result) = message {
            self.note(cx, Hook::OnMessage, &result.tool_call_id).await;
        }
        Ok(())
    }

    async fn after_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        self.note(cx, Hook::AfterTool, call.call).await;
        Ok(())
    }
}
