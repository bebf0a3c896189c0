//! A recorder of hook calls.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use helix_agents_core::error::ErrorRecord;
use helix_agents_core::event::{Suspension, ToolOutcome};
use helix_agents_core::hooks::{
    AgentHooks, HookContext, HookDecision, HookResult, LlmChange, SubAgentView, ToolCallView,
};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmConfig, LlmResponse};
use helix_agents_core::message::Message;
use helix_agents_core::state::Patch;

/// Hooks that record their calls, one line each: the agent, the hook, and the content. Clones share their
/// lines.
#[derive(Clone, Default)]
pub(in crate::runtime_suite) struct Diary {
    /// The name of these hooks, if there are several.
    name: Option<&'static str>,
    lines: Arc<Mutex<Vec<Line>>>,
}

#[derive(Clone)]
struct Line {
    who: String,
    hook: &'static str,
    what: String,
}

impl Diary {
    /// Returns hooks that record into the same lines under this name.
    pub(in crate::runtime_suite) fn named(&self, name: &'static str) -> Self {
        Self { name: Some(name), lines: Arc::clone(&self.lines) }
    }

    /// Returns all lines.
    pub(in crate::runtime_suite) fn all(&self) -> String {
        self.of(|_| true)
    }

    /// Returns the lines about results, in order.
    pub(in crate::runtime_suite) fn results(&self) -> String {
        self.of(|line| {
            let is_message = line.hook == "on_message" && line.what.starts_with("tool ");
            is_message || ["after_tool", "after_sub_agent"].contains(&line.hook)
        })
    }

    /// Returns the lines of these hooks.
    pub(in crate::runtime_suite) fn lines_of(&self, hooks: &[&str]) -> String {
        self.of(|line| hooks.contains(&line.hook))
    }

    fn of(&self, is_asked_for: impl Fn(&Line) -> bool) -> String {
        let lines = self.lines.lock().unwrap();
        let lines = lines.iter().filter(|line| is_asked_for(line));
        lines
            .map(|Line { who, hook, what }| {
                format!("{who}: {hook} {what}").trim().to_owned() + "\n"
            })
            .collect()
    }

    fn note(&self, cx: &HookContext, hook: &'static str, what: impl Into<String>) -> HookResult {
        let who = match self.name {
            Some(name) => format!("{name}'s in {}", cx.agent),
            None => cx.agent.to_string(),
        };
        self.lines.lock().unwrap().push(Line { who, hook, what: what.into() });
        Ok(())
    }
}

fn success(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Success(_) | ToolOutcome::Acknowledged => "success=true".to_owned(),
        ToolOutcome::Error(error) => format!("success=false {}", error.code),
    }
}

#[async_trait]
impl AgentHooks for Diary {
    async fn on_agent_start(&self, cx: &HookContext) -> HookResult {
        self.note(cx, "on_agent_start", format!("turn {}", cx.turn))
    }

    async fn on_agent_complete(&self, cx: &HookContext, output: Option<&Json>) -> HookResult {
        self.note(cx, "on_agent_complete", output.map_or("none", Json::text))
    }

    async fn on_agent_fail(&self, cx: &HookContext, error: &ErrorRecord) -> HookResult {
        self.note(cx, "on_agent_fail", error.code.to_string())
    }

    async fn on_agent_suspended(&self, cx: &HookContext, on: &Suspension) -> HookResult {
        let what = format!("{:?} on {} calls", on.reason(), on.calls.len());
        self.note(cx, "on_agent_suspended", what)
    }

    async fn on_agent_resumed(&self, cx: &HookContext, from: &Suspension) -> HookResult {
        self.note(cx, "on_agent_resumed", format!("{:?}", from.reason()))
    }

    async fn before_llm_call(
        &self,
        cx: &HookContext,
        _: &LlmConfig,
    ) -> HookResult<HookDecision<LlmChange>> {
        self.note(cx, "before_llm_call", format!("step {}", cx.step))?;
        Ok(HookDecision::Continue)
    }

    async fn after_llm_call(&self, cx: &HookContext, _: &LlmResponse) -> HookResult {
        self.note(cx, "after_llm_call", "")
    }

    async fn before_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
    ) -> HookResult<HookDecision<Json>> {
        self.note(cx, "before_tool", format!("{} {}", call.call, call.tool))?;
        Ok(HookDecision::Continue)
    }

    async fn after_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
        outcome: &ToolOutcome,
    ) -> HookResult {
        let what = format!("{} {} {}", call.call, call.tool, success(outcome));
        self.note(cx, "after_tool", what)
    }

    async fn before_sub_agent(&self, cx: &HookContext, call: SubAgentView<'_>) -> HookResult {
        self.note(cx, "before_sub_agent", format!("{} {}", call.call, call.agent))
    }

    async fn after_sub_agent(
        &self,
        cx: &HookContext,
        call: SubAgentView<'_>,
        outcome: &ToolOutcome,
    ) -> HookResult {
        let what = format!("{} {} {}", call.call, call.agent, success(outcome));
        self.note(cx, "after_sub_agent", what)
    }

    async fn on_message(&self, cx: &HookContext, message: &Message) -> HookResult {
        let what = match message {
            Message::System { .. } => "system".to_owned(),
            Message::User(_) => "user".to_owned(),
            Message::Assistant(_) => "assistant".to_owned(),
            Message::Tool(result) => format!("tool {}", result.tool_call_id),
        };
        self.note(cx, "on_message", what)
    }

    async fn on_state_change(&self, cx: &HookContext, patch: &Patch) -> HookResult {
        self.note(cx, "on_state_change", serde_json::to_string(patch)?)
    }

    fn on_thinking(&self, cx: &HookContext, content: &str, complete: bool) {
        drop(self.note(cx, "on_thinking", format!("{content:?} complete={complete}")));
    }

    fn on_text_delta(&self, cx: &HookContext, delta: &str) {
        drop(self.note(cx, "on_text_delta", format!("{delta:?}")));
    }
}
