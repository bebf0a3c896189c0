//! A model that answers at random. Another process with the same request gets another answer, as with real
//! models.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_conformance::rng::Rng;
use helix_agents_core::agent::CompanionMode;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::message::Message;
use helix_agents_core::usage::Usage;
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::{Value, json};

use super::life::ProcessLife;
use super::plan::{Node, Place};

/// The model of one process.
#[derive(Debug, Clone)]
pub struct TreeLlm {
    /// The seed of the story.
    pub seed: u64,
    /// The root agent of the family.
    pub root: Arc<Node>,
    /// The process that calls the model.
    pub life: ProcessLife,
    /// Whether model calls fail occasionally.
    pub fails: bool,
    /// One tool call in this many has large arguments. 0 means none.
    pub large_once_in: usize,
}

/// Calls that every agent can make. Likelier calls occur more often.
const TOOLS: [&str; 11] =
    ["work", "work", "work", "fail", "wire", "pay", "sign", "sign", "stamp", "ask", "hurry"];

/// The maximum number of letters that are appended to a word.
const LARGE: usize = 3_000;

impl TreeLlm {
    fn reply(&self, node: &Node, answers: usize, rng: &mut Rng, sizes: &mut Rng) -> Reply {
        if self.fails && rng.once_in(25) {
            return match rng.below(2) {
                0 => Reply::fails(ErrorCode::ProviderRejected),
                _ => Reply::breaks_off(ErrorCode::ProviderUnavailable, "So I "),
            };
        }
        if answers >= node.answers && !(answers < 6 && rng.once_in(8)) {
            return end(node, rng);
        }
        if rng.once_in(12) {
            return Reply::more_text("Let me think.");
        }
        let mut calls: Vec<_> = (0..=rng.below(3)).map(|_| call(node, rng)).collect();
        if node.has_output() && !node.finish_tool && rng.once_in(12) {
            calls.push(("__finish__".to_owned(), json!({"answer": "at once"})));
        }
        if node.finish_tool && rng.once_in(8) {
            calls.push(("submit".to_owned(), json!({"word": "early"})));
        }
        if self.large_once_in > 0 {
            enlarge(&mut calls, self.large_once_in, sizes);
        }
        Reply::calls(calls.iter().map(|(name, input)| (name.as_str(), input.clone())))
    }
}

fn end(node: &Node, rng: &mut Rng) -> Reply {
    let answer = format!("end {}", rng.below(1000));
    match (node.has_output(), node.finish_tool) {
        // The run sends a correction and asks the model again.
        (true, _) if rng.once_in(8) => Reply::text("I am done."),
        (true, true) => Reply::tool_call("submit", json!({"word": answer})),
        (true, false) => Reply::finish(json!({ "answer": answer })),
        (false, _) => Reply::text(answer),
    }
}

fn call(node: &Node, rng: &mut Rng) -> (String, Value) {
    if !node.below.is_empty()
        && rng.once_in(2)
        && let Some(child) = rng.pick(&node.below)
    {
        let message = format!("do {}", rng.below(1_000_000));
        return match child.place {
            Place::Companion(mode) => companion_call(&child.name, mode, &message, rng),
            Place::Root | Place::SubAgent => {
                (format!("subagent__{}", child.name), json!({ "message": message }))
            }
        };
    }
    let tool = rng.pick(&TOOLS).copied().unwrap_or("work");
    (tool.to_owned(), json!({ "word": format!("w{}", rng.below(1000)) }))
}

/// Extends the word of some calls, so that several of them do not fit into one small append.
fn enlarge(calls: &mut [(String, Value)], once_in: usize, rng: &mut Rng) {
    for (_, input) in calls {
        let word = input.get("word").and_then(Value::as_str);
        if let Some(word) = word
            && rng.once_in(once_in)
        {
            *input = json!({ "word": format!("{word}{}", "y".repeat(1 + rng.below(LARGE))) });
        }
    }
}

fn companion_call(
    agent: &str,
    mode: CompanionMode,
    message: &str,
    rng: &mut Rng,
) -> (String, Value) {
    let name = format!("{agent}-{}", 1 + rng.below(2));
    let (tool, input) = match rng.below(10) {
        0..=3 => ("spawnAgent", json!({ "agent": agent, "message": message, "name": name })),
        4 => ("spawnAgent", json!({ "agent": agent, "message": message })),
        5 | 6 => ("sendMessage", json!({ "name": name, "message": message })),
        7 if mode == CompanionMode::Blocking => ("waitForResult", json!({ "name": name })),
        7 => ("listChildren", json!({})),
        8 => ("getChildStatus", json!({ "name": name })),
        _ => ("terminateChild", json!({ "name": name })),
    };
    (format!("companion__{tool}"), input)
}

#[async_trait]
impl LlmAdapter for TreeLlm {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let mut gave = 0;
        for message in request.messages {
            gave += usize::from(matches!(**message, Message::Assistant(_)));
        }
        let node = self
            .root
            .find(request.agent)
            .ok_or_else(|| Error::new(ErrorCode::ModelUnknown, "no such agent in the family"))?;
        let seed =
            (self.seed, request.session.as_str(), request.messages.len(), self.life.number());
        let (mut rng, mut sizes) = (Rng::of(seed), Rng::of((seed, "sizes")));
        let reply = self.reply(node, gave, &mut rng, &mut sizes);
        let usage = Usage::new(1 + rng.roll() % 50, 1 + rng.roll() % 20);
        self.life.tick().await;
        self.life.linger().await;
        let script = ScriptedLlm::new([]).chunk_size(200);
        let result = tokio::select! {
            biased;
            () = request.cancel.cancelled() => {
                return Err(Error::new(ErrorCode::Cancelled, "the model call was cancelled"));
            }
            result = async {
                let result = script.answer(reply, gave, sink).await;
                self.life.tick().await;
                result
            } => result,
        };
        let mut response = LlmResponse::new(result, usage);
        response.model = Some("trees".into());
        Ok(response)
    }

    fn check(&self, _config: &LlmConfig) -> Result<()> {
        Ok(())
    }
}
