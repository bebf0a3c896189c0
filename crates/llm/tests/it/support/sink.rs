//! A sink that records what it receives, one line each.

use std::sync::Mutex;

use helix_agents_core::error::Error;
use helix_agents_core::llm::LlmSink;
use helix_agents_core::message::Arguments;
use helix_agents_core::step::ParsedToolCall;
use tokio::sync::Notify;

/// The recording sink.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    lines: Mutex<Vec<String>>,
    /// The notification of every received item.
    pub(crate) news: Notify,
}

impl Recorder {
    fn add(&self, line: String) {
        self.lines.lock().unwrap().push(line);
        self.news.notify_one();
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Returns all pieces of one kind, concatenated.
    pub(crate) fn joined(&self, kind: &str) -> String {
        let lines = self.lines();
        lines.iter().filter_map(|line| line.strip_prefix(kind)).collect()
    }
}

impl LlmSink for Recorder {
    fn text_delta(&self, delta: &str) {
        self.add(format!("text {delta}"));
    }

    fn thinking(&self, content: &str, complete: bool) {
        let kind = if complete { "thought" } else { "thinking" };
        self.add(format!("{kind} {content}"));
    }

    fn tool_call_start(&self, index: u32, name: &str) {
        self.add(format!("start {index} {name}"));
    }

    fn tool_call_delta(&self, index: u32, delta: &str) {
        self.add(format!("args {index} {delta}"));
    }

    fn tool_call(&self, call: &ParsedToolCall) {
        let arguments = match &call.arguments {
            Arguments::Json(json) => json.text().to_owned(),
            Arguments::Malformed(text) => format!("malformed {text}"),
        };
        self.add(format!("call {} {} {arguments}", call.id, call.name));
    }

    fn error(&self, error: &Error) {
        self.add(format!("error {}", error.code()));
    }
}
