//! A conversation of several model calls. Each reply is stored and loaded again, and its calls get results.

use std::sync::Arc;

use helix_agents_core::event::ModelReply;
use helix_agents_core::llm::{LlmAdapter, LlmResponse};
use helix_agents_core::message::{
    AssistantMessage, Message, SharedMessage, ToolCall, ToolResultMessage, UserMessage,
};
use helix_agents_core::tool::ToolSet;
use serde_json::json;

use super::{Ask, tool};

/// The conversation.
#[derive(Debug)]
pub(crate) struct Talk {
    pub(crate) ask: Ask,
    steps: u32,
}

impl Talk {
    /// Starts a conversation with a model.
    pub(crate) fn with(model: &str) -> Self {
        let mut talk = Self { ask: Ask::default(), steps: 0 };
        talk.model(model);
        talk.tools(&["lookup"]);
        talk
    }

    /// Selects the model of the next calls, of the provider `local`.
    pub(crate) fn model(&mut self, model: &str) {
        self.ask.config.model = format!("local:{model}");
    }

    /// Replaces the tools.
    pub(crate) fn tools(&mut self, names: &[&str]) {
        let schema = json!({"type": "object", "properties": {"key": {"type": "integer"}}});
        let tools = names.iter().map(|name| tool(name, schema.clone(), false));
        self.ask.tools = Arc::new(ToolSet::new(tools.collect()));
    }

    /// Replaces the prompt.
    pub(crate) fn prompt(&mut self, text: &str) {
        self.ask.prompt = Message::System { content: text.to_owned() }.into();
    }

    /// Sets a member of the request.
    pub(crate) fn option(&mut self, key: &str, value: serde_json::Value) {
        let options = self.ask.config.provider_options.entry("local".to_owned()).or_default();
        options.insert(key.to_owned(), value);
    }

    /// Adds a message of the user.
    pub(crate) fn say(&mut self, text: &str) {
        self.ask.messages.push(Message::User(UserMessage::new(text)).into());
    }

    /// Returns a second conversation with the same beginning.
    pub(crate) fn fork(&self) -> Self {
        let ask = Ask {
            prompt: self.ask.prompt.clone(),
            messages: self.ask.messages.clone(),
            tools: Arc::clone(&self.ask.tools),
            config: self.ask.config.clone(),
            ..Ask::default()
        };
        Self { ask, steps: self.steps }
    }

    /// Calls the model, and adds its reply and the results of its calls.
    pub(crate) async fn step(&mut self, adapter: &dyn LlmAdapter) -> LlmResponse {
        let response = self.ask.answer(adapter).await;
        self.steps += 1;
        let reply = ModelReply::from_response(self.steps, response.clone(), 0);
        let Some(message) = reply.message else { return response };
        let stored = serde_json::to_string(&*message).unwrap();
        let loaded: AssistantMessage = serde_json::from_str(&stored).unwrap();
        let results: Vec<_> = loaded.tool_calls.iter().map(found).collect();
        self.ask.messages.push(Message::Assistant(Arc::new(loaded)).into());
        self.ask.messages.extend(results);
        response
    }

    /// Calls the model several times.
    pub(crate) async fn steps(&mut self, count: usize, adapter: &dyn LlmAdapter) {
        for _ in 0..count {
            self.step(adapter).await;
        }
    }
}

/// Returns the result of a call.
pub(crate) fn found(call: &ToolCall) -> SharedMessage {
    let result = ToolResultMessage {
        tool_call_id: call.id.clone(),
        provider_id: call.provider_id.clone(),
        tool_name: call.name.to_string(),
        content: "found".to_owned(),
        attachments: Vec::new(),
        failed: false,
    };
    Message::Tool(result).into()
}
