//! What hooks were told of calls.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::hooks::{AgentHooks, Before, HookContext, HookResult, ToolCallView};
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::message::Message;
use helix_agents_core::state::Patch;
use serde::{Deserialize, Serialize};

use super::notes::Notes;

/// The hooks of a call, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Hook {
    BeforeTool,
    OnStateChange,
    OnMessage,
    AfterTool,
}

/// That a hook ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) hook: Hook,
    pub(super) session: SessionId,
    pub(super) run: RunId,
    pub(super) call: CallId,
}

/// Hooks of the root, which are told of what happens below it as well.
pub(super) struct Listener(pub(super) Arc<Notes<Told>>);

impl Listener {
    fn note(&self, cx: &HookContext, hook: Hook, call: &CallId) {
        let (session, run, call) = (cx.session.clone(), cx.run.clone(), call.clone());
        self.0.note(Told { hook, session, run, call });
    }
}

#[async_trait]
impl AgentHooks for Listener {
    async fn before_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
    ) -> HookResult<Before<Json>> {
        self.note(cx, Hook::BeforeTool, call.call);
        Ok(Before::Continue)
    }

    async fn on_state_change(&self, cx: &HookContext, _: &Patch) -> HookResult {
        // The point has the call's name in its key.
        if let Some((_, call)) = cx.key().split_once("/after_tool.") {
            self.note(cx, Hook::OnStateChange, &CallId::from(call));
        }
        Ok(())
    }

    async fn on_message(&self, cx: &HookContext, message: &Message) -> HookResult {
        if let Message::Tool(result) = message {
            self.note(cx, Hook::OnMessage, &result.tool_call_id);
        }
        Ok(())
    }

    async fn after_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        self.note(cx, Hook::AfterTool, call.call);
        Ok(())
    }
}
