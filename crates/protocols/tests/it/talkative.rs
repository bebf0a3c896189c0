//! A model that reasons before some of its replies.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use helix_agents_conformance::rng::Rng;
use helix_agents_core::error::{Error, Result};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::message::Thinking;
use helix_agents_core::step::{ParsedToolCall, StepResult};

/// A model that adds reasoning to some replies of another model.
#[derive(Debug)]
pub(crate) struct Talkative {
    pub(crate) inner: Arc<dyn LlmAdapter>,
    pub(crate) seed: u64,
}

#[async_trait]
impl LlmAdapter for Talkative {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let seed = (self.seed, request.session.as_str(), request.messages.len(), "reasoning");
        if !Rng::of(seed).once_in(3) {
            return self.inner.generate_step(request, sink).await;
        }
        // Whether the reply can have reasoning is only known when it is complete.
        let held = Held::default();
        let mut response = self.inner.generate_step(request, &held).await?;
        if let StepResult::Text { thinking, .. } | StepResult::ToolCalls { thinking, .. } =
            &mut response.result
        {
            *thinking = Some(Thinking::new("First this, then that."));
            sink.thinking("First this, ", false);
            sink.thinking("then that.", false);
        }
        held.deliver(sink);
        Ok(response)
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        self.inner.check(config)
    }
}

enum Piece {
    Text(String),
    CallStart(u32, String),
    CallDelta(u32, String),
    Custom(String, Json),
}

/// Keeps what a model delivers.
#[derive(Default)]
struct Held(Mutex<Vec<Piece>>);

impl Held {
    fn add(&self, piece: Piece) {
        self.0.lock().unwrap().push(piece);
    }

    fn deliver(self, sink: &dyn LlmSink) {
        for piece in self.0.into_inner().unwrap() {
            match piece {
                Piece::Text(delta) => sink.text_delta(&delta),
                Piece::CallStart(index, name) => sink.tool_call_start(index, &name),
                Piece::CallDelta(index, delta) => sink.tool_call_delta(index, &delta),
                Piece::Custom(name, data) => sink.custom(&name, &data),
            }
        }
    }
}

impl LlmSink for Held {
    fn text_delta(&self, delta: &str) {
        self.add(Piece::Text(delta.to_owned()));
    }

    fn thinking(&self, _: &str, _: bool) {}

    fn tool_call_start(&self, index: u32, name: &str) {
        self.add(Piece::CallStart(index, name.to_owned()));
    }

    fn tool_call_delta(&self, index: u32, delta: &str) {
        self.add(Piece::CallDelta(index, delta.to_owned()));
    }

    fn tool_call(&self, _: &ParsedToolCall) {}

    fn error(&self, _: &Error) {}

    fn custom(&self, name: &str, data: &Json) {
        self.add(Piece::Custom(name.to_owned(), data.clone()));
    }
}
