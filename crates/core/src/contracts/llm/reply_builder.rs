//! Assembly of a model's output from its parts.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::reply::{ParsedSubAgentCall, ParsedToolCall, StepResult, StopReason};
use crate::id::CallId;
use crate::json::Json;
use crate::message::{LayoutPart, ReplyLayout, Thinking};
use crate::tool::SUB_AGENT_PREFIX;

/// Assembles the output of a model call from its parts, in the order in which the model produced them.
///
/// # Examples
///
/// ```
/// use helix_agents_core::json::Json;
/// use helix_agents_core::llm::ReplyBuilder;
/// use helix_agents_core::step::{StepResult, StopReason};
///
/// let mut reply = ReplyBuilder::default();
/// reply.thinking("Simple.", Some(Json::parse(r#"{"signature":"EqQB"}"#)?));
/// reply.text("42", None);
/// let layout = reply.layout("anthropic", "claude-sonnet-5");
/// let result = reply.into_result(Some(StopReason::EndTurn), false);
/// assert!(matches!(result, StepResult::Text { content, should_stop: true, .. } if content == "42"));
/// assert!(layout.is_some(), "the signature has to be sent back");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ReplyBuilder {
    thinking: String,
    text: String,
    calls: Vec<ParsedToolCall>,
    /// The ids of the calls.
    ids: BTreeSet<CallId>,
    parts: Vec<LayoutPart>,
    messages: usize,
}

impl ReplyBuilder {
    /// Creates the builder of a reply that follows this number of messages. The number is part of the ids that calls
    /// without an id get, so that these are unique in the conversation.
    #[must_use]
    pub fn after_messages(messages: usize) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Adds reasoning. The provider's data is sent back with it. Empty reasoning without data is ignored.
    pub fn thinking(&mut self, text: &str, data: Option<Json>) {
        self.thinking.push_str(text);
        match self.parts.last_mut() {
            Some(LayoutPart::Thinking { bytes, data: None }) if data.is_none() => {
                *bytes += text.len();
            }
            _ if text.is_empty() && data.is_none() => {}
            _ => self.parts.push(LayoutPart::Thinking { bytes: text.len(), data }),
        }
    }

    /// Adds text. The provider's data is sent back with it. Empty text without data is ignored.
    pub fn text(&mut self, text: &str, data: Option<Json>) {
        self.text.push_str(text);
        match self.parts.last_mut() {
            Some(LayoutPart::Text { bytes, data: None }) if data.is_none() => *bytes += text.len(),
            _ if text.is_empty() && data.is_none() => {}
            _ => self.parts.push(LayoutPart::Text { bytes: text.len(), data }),
        }
    }

    /// Adds a tool call. The provider's data is sent back with it. The call gets another id if its id is empty or belongs to
    /// an earlier call of the reply, because results name their call by its id.
    pub fn call(&mut self, mut call: ParsedToolCall, data: Option<Json>) {
        if call.id.as_str().is_empty() || self.ids.contains(&call.id) {
            call.id = self.new_id();
        }
        self.ids.insert(call.id.clone());
        self.parts.push(LayoutPart::Call { index: self.calls.len(), data });
        self.calls.push(call);
    }

    /// Adds a part that only the provider reads, such as the result of a tool that it ran. It is sent back unchanged.
    pub fn opaque(&mut self, data: Json) {
        self.parts.push(LayoutPart::Opaque { data });
    }

    /// Returns `true` if the reply has no parts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the tool calls, in the order in which they were added.
    #[must_use]
    pub fn calls(&self) -> &[ParsedToolCall] {
        &self.calls
    }

    /// Returns the layout of the reply. `provider` is the name of the API and `model` the name of the model in the
    /// request. Returns `None` if the reply is its reasoning, then its text, then its calls, without data of the provider.
    #[must_use]
    pub fn layout(&self, provider: impl Into<Arc<str>>, model: &str) -> Option<ReplyLayout> {
        if self.is_plain() {
            return None;
        }
        let order = self.call_order();
        let mut parts = self.parts.clone();
        for part in &mut parts {
            if let LayoutPart::Call { index, .. } = part {
                *index = order.get(*index).copied().unwrap_or(*index);
            }
        }
        Some(ReplyLayout { provider: provider.into(), model: Arc::from(model), parts })
    }

    /// Converts the parts into the result of a step. With `structured`, text that is JSON is a structured output.
    #[must_use]
    pub fn into_result(self, stop_reason: Option<StopReason>, structured: bool) -> StepResult {
        let thinking = Some(self.thinking).filter(|text| !text.is_empty()).map(Thinking::new);
        let content = self.text;
        if !self.calls.is_empty() {
            let content = Some(content).filter(|text| !text.is_empty());
            let (tool_calls, sub_agent_calls) = by_kind(self.calls);
            return StepResult::ToolCalls {
                content,
                tool_calls,
                sub_agent_calls,
                thinking,
                stop_reason,
            };
        }
        let is_whole = matches!(stop_reason, Some(StopReason::EndTurn) | None);
        if structured
            && is_whole
            && let Ok(output) = Json::parse(&content)
        {
            return StepResult::StructuredOutput { output, thinking, stop_reason };
        }
        // A model that requests tools but names none has not ended its turn, and neither has one that was paused.
        let should_stop = !matches!(stop_reason, Some(StopReason::ToolUse | StopReason::Pause));
        StepResult::Text { content, thinking, should_stop, stop_reason }
    }

    fn new_id(&self) -> CallId {
        let mut index = self.calls.len();
        loop {
            let id = CallId::from(format!("call_{}_{index}", self.messages));
            if !self.ids.contains(&id) {
                return id;
            }
            index += 1;
        }
    }

    fn is_plain(&self) -> bool {
        let rank = |part: &LayoutPart| match part {
            LayoutPart::Thinking { data: None, .. } => Some(0),
            LayoutPart::Text { data: None, .. } => Some(1),
            LayoutPart::Call { data: None, .. } => Some(2),
            _ => None,
        };
        self.parts.iter().all(|part| rank(part).is_some())
            && self.parts.is_sorted_by_key(rank)
            && self.call_order().is_sorted()
    }

    /// Returns the index of each call in the message, in which sub-agent calls follow the tool calls.
    fn call_order(&self) -> Vec<usize> {
        let tools = self.calls.iter().filter(|call| !is_sub_agent(call)).count();
        let (mut next_tool, mut next_sub_agent) = (0, tools);
        let index = |call: &ParsedToolCall| {
            let next = if is_sub_agent(call) { &mut next_sub_agent } else { &mut next_tool };
            *next += 1;
            *next - 1
        };
        self.calls.iter().map(index).collect()
    }
}

fn is_sub_agent(call: &ParsedToolCall) -> bool {
    call.name.starts_with(SUB_AGENT_PREFIX)
}

fn by_kind(calls: Vec<ParsedToolCall>) -> (Vec<ParsedToolCall>, Vec<ParsedSubAgentCall>) {
    let mut tool_calls = Vec::with_capacity(calls.len());
    let mut sub_agent_calls = Vec::new();
    for call in calls {
        match call.name.strip_prefix(SUB_AGENT_PREFIX) {
            None => tool_calls.push(call),
            Some(agent) => sub_agent_calls.push(ParsedSubAgentCall {
                agent_type: agent.to_owned(),
                id: call.id,
                provider_id: call.provider_id,
                input: call.arguments,
            }),
        }
    }
    (tool_calls, sub_agent_calls)
}

#[cfg(test)]
mod tests;
