//! The scenario of a provider that signs its replies and rejects conversations in which a signature has changed.

use std::path::Path;

use async_trait::async_trait;
use helix_agents::error::Result;
use helix_agents::json::Json;
use helix_agents::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents::message::{Message, ReplyPart, SharedMessage};
use helix_agents::step::{StepResult, StopReason};
use helix_agents::usage::Usage;
use helix_agents_test::{Part, Reply, ScriptedLlm};

use super::{REJECTED, Scenario, word, worker};

/// A signature, written as no JSON writer would write it.
const SIGNATURE: &str = r#"{ "signature" : "Eq\u0051B\/+==", "n" : 1.50 }"#;

/// Encrypted reasoning.
const ENCRYPTED: &str = r#"{"type":"redacted","data":"gAAAA=="}"#;

/// A call of a tool that the provider runs.
const SEARCH: &str = r#"{"type":"server_tool_use","id":"srv_1","input":{"z":1e2,"a":[ ]}}"#;

/// The data of each reply of the script, in the order of its parts.
const DATA: [&[&str]; 3] = [&[SIGNATURE, SIGNATURE], &[ENCRYPTED, SEARCH], &[]];

pub(super) fn named(name: &str, trace: &Path) -> Option<Scenario> {
    if name != "signed" {
        return None;
    }
    let data = |text| Json::parse(text).ok();
    let paused = [
        Part::thinking("").with_data(data(ENCRYPTED)?),
        Part::text("then another."),
        Part::opaque(data(SEARCH)?),
    ];
    let replies = [
        Reply::of_parts([
            Part::thinking("Two things.").with_data(data(SIGNATURE)?),
            Part::text("First one thing, "),
            Part::call("act", word("one")).with_data(data(SIGNATURE)?),
        ]),
        Reply::of_parts(paused).with_stop_reason(StopReason::Pause),
        Reply::text("Both are done."),
    ];
    Scenario::new(worker(trace), SigningProvider(ScriptedLlm::new(replies)))
}

/// A provider that accepts a request only if it has the data of all replies so far, unchanged, once and in order.
#[derive(Debug)]
struct SigningProvider(ScriptedLlm);

#[async_trait]
impl LlmAdapter for SigningProvider {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let is_reply = |message: &&SharedMessage| matches!(***message, Message::Assistant(_));
        let replies = request.messages.iter().filter(is_reply).count();
        let expected: Vec<_> = DATA.iter().take(replies).copied().flatten().copied().collect();
        let received = received(request.messages);
        if received == expected {
            return self.0.generate_step(request, sink).await;
        }
        let rejected = StepResult::Text {
            content: format!("{REJECTED}: it received {received:?}"),
            thinking: None,
            should_stop: true,
            stop_reason: Some(StopReason::EndTurn),
        };
        Ok(LlmResponse::new(rejected, Usage::default()))
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        self.0.check(config)
    }
}

/// Returns the data that a request sends back, in order.
fn received(messages: &[SharedMessage]) -> Vec<&str> {
    let mut received = Vec::new();
    for message in messages {
        let Message::Assistant(reply) = &**message else { continue };
        received.extend(reply.parts().filter_map(|part| match part {
            ReplyPart::Thinking { data, .. }
            | ReplyPart::Text { data, .. }
            | ReplyPart::Call { data, .. } => data.map(Json::text),
            ReplyPart::Opaque { data } => Some(data.text()),
            _ => None,
        }));
    }
    received
}
