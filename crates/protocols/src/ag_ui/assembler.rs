//! Assembly of messages from events, as the client does it.
//!
//! Snapshots are assembled from the events of a replay, so that they equal the messages that a client has built live.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Event, FunctionCall, Message, ToolCall, UserContent};

/// Assembles the messages and the state of a client from the events of one or more runs. The cost of an event does not
/// depend on the number of messages, except for snapshots and for results of calls that are not in the last message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Assembler {
    messages: Vec<Message>,
    state: Value,
    index: Index,
}

/// The positions of messages and calls.
#[derive(Debug, Clone, PartialEq, Default)]
struct Index {
    messages: HashMap<String, usize>,
    /// The message of each call, and the position of the call in it.
    calls: HashMap<String, (usize, usize)>,
    /// The number of results that follow each message with calls.
    results: HashMap<usize, usize>,
}

impl Index {
    fn of(messages: &[Message]) -> Self {
        let mut index = Self::default();
        let mut last = None;
        for (position, message) in messages.iter().enumerate() {
            index.add(position, message);
            match message {
                Message::Tool { .. } => {
                    *index.results.entry(last.unwrap_or(usize::MAX)).or_default() += 1;
                }
                _ => last = Some(position),
            }
        }
        index
    }

    fn add(&mut self, position: usize, message: &Message) {
        // Results may repeat an id: the first message has it.
        self.messages.entry(message.id().to_owned()).or_insert(position);
        if let Message::Assistant { tool_calls, .. } = message {
            for (number, call) in tool_calls.iter().enumerate() {
                self.calls.entry(call.id.clone()).or_insert((position, number));
            }
        }
    }
}

impl Assembler {
    /// Creates an assembler that starts with messages.
    #[must_use]
    pub fn with_messages(messages: Vec<Message>) -> Self {
        let index = Index::of(&messages);
        Self { messages, state: json!({}), index }
    }

    /// Returns the messages.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the messages.
    #[must_use]
    pub fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    /// Returns the custom state.
    #[must_use]
    pub fn state(&self) -> &Value {
        &self.state
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::TextMessageStart { message_id, .. } => {
                let (id, content, tool_calls) =
                    (message_id.clone(), Some(String::new()), Vec::new());
                self.add(Message::Assistant { id, content, tool_calls });
            }
            Event::TextMessageContent { message_id, delta } => {
                if let Some(Message::Assistant { content, .. }) = self.message(message_id) {
                    content.get_or_insert_default().push_str(delta);
                }
            }
            Event::ReasoningMessageStart { message_id, .. } => {
                self.add(Message::Reasoning { id: message_id.clone(), content: String::new() });
            }
            Event::ReasoningMessageContent { message_id, delta } => {
                if let Some(Message::Reasoning { content, .. }) = self.message(message_id) {
                    content.push_str(delta);
                }
            }
            Event::ToolCallStart { tool_call_id, tool_call_name, parent_message_id } => {
                self.add_call(tool_call_id, tool_call_name, parent_message_id);
            }
            Event::ToolCallArgs { tool_call_id, delta } => {
                if let Some(call) = self.call(tool_call_id) {
                    call.function.arguments.push_str(delta);
                }
            }
            Event::ToolCallResult { message_id, tool_call_id, content, metadata, .. } => {
                self.add_result(Message::Tool {
                    id: message_id.clone(),
                    tool_call_id: tool_call_id.clone(),
                    content: UserContent::Text(content.clone()),
                    error: None,
                    metadata: metadata.clone(),
                });
            }
            Event::MessagesSnapshot { messages } => self.replace(messages),
            Event::StateSnapshot { snapshot } => self.state.clone_from(snapshot),
            Event::StateDelta { delta } => delta.apply(&mut self.state),
            _ => {}
        }
    }

    fn message(&mut self, id: &str) -> Option<&mut Message> {
        self.messages.get_mut(*self.index.messages.get(id)?)
    }

    /// Adds a message, unless there is one with its id.
    pub(super) fn add(&mut self, message: Message) {
        if !self.index.messages.contains_key(message.id()) {
            self.index.add(self.messages.len(), &message);
            self.messages.push(message);
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut ToolCall> {
        let (message, number) = *self.index.calls.get(id)?;
        match self.messages.get_mut(message)? {
            Message::Assistant { tool_calls, .. } => tool_calls.get_mut(number),
            _ => None,
        }
    }

    fn add_call(&mut self, id: &str, name: &str, parent: &str) {
        if self.index.calls.contains_key(id) {
            return;
        }
        let (content, tool_calls) = (None, Vec::new());
        self.add(Message::Assistant { id: parent.to_owned(), content, tool_calls });
        let Some(position) = self.index.messages.get(parent).copied() else { return };
        if let Some(Message::Assistant { tool_calls, .. }) = self.messages.get_mut(position) {
            self.index.calls.insert(id.to_owned(), (position, tool_calls.len()));
            let function = FunctionCall { name: name.to_owned(), arguments: String::new() };
            tool_calls.push(ToolCall { id: id.to_owned(), kind: "function".to_owned(), function });
        }
    }

    /// Adds a result after the message with its call and the results that follow it.
    fn add_result(&mut self, result: Message) {
        let Message::Tool { tool_call_id, .. } = &result else { return };
        let Some((of_call, _)) = self.index.calls.get(tool_call_id).copied() else {
            self.messages.push(result);
            self.index = Index::of(&self.messages);
            return;
        };
        let count = self.index.results.entry(of_call).or_default();
        let position = of_call + 1 + *count;
        *count += 1;
        if position == self.messages.len() {
            self.index.add(position, &result);
            self.messages.push(result);
        } else {
            self.messages.insert(position, result);
            self.index = Index::of(&self.messages);
        }
    }

    fn replace(&mut self, new: &[Message]) {
        let has_reasoning = new.iter().any(|message| matches!(message, Message::Reasoning { .. }));
        let by_id: HashMap<&str, &Message> =
            new.iter().rev().map(|message| (message.id(), message)).collect();
        self.messages.retain(|known| {
            let is_kept = matches!(known, Message::Reasoning { .. }) && !has_reasoning;
            is_kept || by_id.contains_key(known.id())
        });
        for known in &mut self.messages {
            if let Some(message) = by_id.get(known.id()) {
                known.clone_from(message);
            }
        }
        self.index = Index::of(&self.messages);
        new.iter().cloned().for_each(|message| self.add(message));
        self.index = Index::of(&self.messages);
    }
}
