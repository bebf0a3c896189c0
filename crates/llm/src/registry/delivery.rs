//! Whether a model call has delivered output, which rules out a call to another model.

use std::sync::atomic::{AtomicBool, Ordering};

use helix_agents_core::error::Error;
use helix_agents_core::json::Json;
use helix_agents_core::llm::LlmSink;
use helix_agents_core::step::ParsedToolCall;

/// A sink that forwards everything, and records whether there was output of a model.
pub(super) struct Delivery<'a> {
    sink: &'a dyn LlmSink,
    has_output: AtomicBool,
}

impl<'a> Delivery<'a> {
    pub(super) const fn new(sink: &'a dyn LlmSink) -> Self {
        Self { sink, has_output: AtomicBool::new(false) }
    }

    /// Returns `true` if output of a model was delivered.
    pub(super) fn has_output(&self) -> bool {
        self.has_output.load(Ordering::Relaxed)
    }

    fn record(&self) -> &'a dyn LlmSink {
        self.has_output.store(true, Ordering::Relaxed);
        self.sink
    }
}

impl LlmSink for Delivery<'_> {
    fn text_delta(&self, delta: &str) {
        self.record().text_delta(delta);
    }

    fn thinking(&self, content: &str, complete: bool) {
        self.record().thinking(content, complete);
    }

    fn tool_call_start(&self, index: u32, name: &str) {
        self.record().tool_call_start(index, name);
    }

    fn tool_call_delta(&self, index: u32, delta: &str) {
        self.record().tool_call_delta(index, delta);
    }

    fn tool_call(&self, call: &ParsedToolCall) {
        self.record().tool_call(call);
    }

    fn error(&self, error: &Error) {
        self.sink.error(error);
    }

    fn custom(&self, name: &str, data: &Json) {
        self.sink.custom(name, data);
    }
}
