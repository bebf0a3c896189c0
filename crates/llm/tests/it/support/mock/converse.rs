//! The rules of the Converse API of Amazon Bedrock.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helix_agents_llm::ApiFormat;
use serde_json::{Value, json};

use super::super::{event_frame, frame};
use super::seal::{self, Verdict};
use super::{BINDING_BETA, Part, Request, Rules};

/// The Converse API for one account. Its models bind reasoning to everything before it.
pub(crate) struct Converse {
    account: &'static str,
    dropped: Vec<String>,
}

impl Converse {
    pub(crate) fn of(account: &'static str) -> Self {
        Self { account, dropped: Vec::new() }
    }

    fn check_reasoning(&mut self, model: &str, body: &Value) -> Result<(), String> {
        let fields = &body["additionalModelRequestFields"];
        let binding = &fields["thinking"]["block_binding"];
        let betas = fields["anthropic_beta"].as_array().into_iter().flatten();
        if !binding.is_null() && !betas.into_iter().any(|beta| beta == BINDING_BETA) {
            return Err(format!("thinking.block_binding requires the beta {BINDING_BETA}"));
        }
        let mut before = beginning(body);
        for (path, role, block) in places(body) {
            if let Some((text, signature)) = signed(&block) {
                match seal::verify((self.account, model), &before, &text, &signature) {
                    Verdict::Valid => {}
                    Verdict::Moved if binding["prefix_mismatch_behavior"] == "drop_block" => {
                        self.dropped.push(path);
                    }
                    _ => return Err(format!("{path}: Invalid `signature` in `thinking` block")),
                }
            }
            before.push(json!([role, block]));
        }
        Ok(())
    }
}

impl Rules for Converse {
    fn format(&self) -> ApiFormat {
        ApiFormat::BedrockConverse
    }

    fn check(&mut self, request: &Request) -> Result<(), String> {
        self.dropped.clear();
        let body = request.json();
        let places = places(&body);
        let count = |kind| places.iter().filter(|place| place.2.get(kind).is_some()).count();
        if count("toolUse") > 0 && body.get("toolConfig").is_none() {
            return Err("The toolConfig field must be defined when using toolUse.".into());
        }
        if count("toolUse") != count("toolResult") {
            return Err("Expected toolResult blocks for the toolUse blocks.".into());
        }
        if count("reasoningContent") > 0 && count("cachePoint") > 0 {
            return Err("Cache points after reasoning are not supported.".into());
        }
        if places.last().is_none_or(|place| place.1 != "user") {
            return Err("A conversation must end with a user message.".into());
        }
        let thinking = &body["additionalModelRequestFields"]["thinking"];
        if body["toolConfig"].get("toolChoice").is_some() && thinking["type"] == "enabled" {
            return Err("Thinking may not be enabled when tool_choice forces tool use.".into());
        }
        self.check_reasoning(&model(request), &body)
    }

    fn events(&mut self, request: &Request, parts: &[Part], _: bool) -> Vec<Vec<u8>> {
        let (body, model) = (request.json(), model(request));
        let mut before = beginning(&body);
        before.extend(places(&body).into_iter().map(|(_, role, block)| json!([role, block])));
        let mut events = vec![event_frame("messageStart", &json!({"role": "assistant"}))];
        for (index, part) in parts.iter().enumerate() {
            let sign = |text: &str| seal::sign(self.account, &model, &before, text);
            let (deltas, whole) = block(*part, sign);
            if let Part::Call(id) = part {
                let start = json!({"toolUse": {"toolUseId": id, "name": "lookup"}});
                let start = json!({"contentBlockIndex": index, "start": start});
                events.push(event_frame("contentBlockStart", &start));
            }
            events.extend(deltas.iter().map(|delta| {
                let delta = json!({"contentBlockIndex": index, "delta": delta});
                event_frame("contentBlockDelta", &delta)
            }));
            before.push(json!(["assistant", whole]));
        }
        let calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
        let stop = json!({"stopReason": if calls { "tool_use" } else { "end_turn" }});
        events.push(event_frame("messageStop", &stop));
        let usage = json!({"usage": {"inputTokens": 9, "outputTokens": 4}});
        events.push(event_frame("metadata", &usage));
        events
    }

    fn overload(&self) -> Vec<u8> {
        let headers = [(":exception-type", "serviceUnavailableException")];
        frame(&headers, &json!({"message": "Overloaded"}))
    }

    fn dropped(&self) -> Vec<String> {
        self.dropped.clone()
    }
}

/// Returns the pieces of a block, and the whole block.
fn block(part: Part, sign: impl Fn(&str) -> String) -> (Vec<Value>, Value) {
    match part {
        Part::Thinking(text) => {
            let signature = sign(text);
            let whole = json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}});
            let deltas = [json!({"text": text}), json!({"signature": signature})];
            (deltas.map(|delta| json!({"reasoningContent": delta})).into(), whole)
        }
        Part::Redacted(text) => {
            let content = format!("{text}|{}", sign(text));
            // Each piece is base64 of its own, with padding.
            let pieces = content.as_bytes().chunks(25).map(|piece| STANDARD.encode(piece));
            let delta = |piece: String| json!({"reasoningContent": {"redactedContent": piece}});
            let whole = json!({"reasoningContent": {"redactedContent": STANDARD.encode(&content)}});
            (pieces.map(delta).collect(), whole)
        }
        Part::Text(text) => (vec![json!({"text": text})], json!({"text": text})),
        Part::Call(id) | Part::Search(id) | Part::Found(id) => {
            let whole =
                json!({"toolUse": {"toolUseId": id, "name": "lookup", "input": {"key": 1}}});
            (vec![json!({"toolUse": {"input": "{\"key\":1}"}})], whole)
        }
    }
}

/// Returns the text and the signature of reasoning.
fn signed(block: &Value) -> Option<(String, String)> {
    let reasoning = block.get("reasoningContent")?;
    if let Some(content) = reasoning["redactedContent"].as_str() {
        let content = String::from_utf8(STANDARD.decode(content).unwrap()).unwrap();
        let (text, signature) = content.split_once('|').unwrap();
        return Some((text.to_owned(), signature.to_owned()));
    }
    let text = &reasoning["reasoningText"];
    Some((text["text"].as_str()?.to_owned(), text["signature"].as_str()?.to_owned()))
}

fn model(request: &Request) -> String {
    let path = request.head.split("/model/").nth(1).unwrap();
    path.split('/').next().unwrap().to_owned()
}

fn beginning(body: &Value) -> Vec<Value> {
    let unmarked = |list: &Value| -> Value {
        let items = list.as_array().into_iter().flatten();
        items.filter(|item| item.get("cachePoint").is_none()).cloned().collect()
    };
    vec![unmarked(&body["system"]), unmarked(&body["toolConfig"]["tools"])]
}

/// Returns the paths, the roles and the contents of the blocks of a conversation.
fn places(body: &Value) -> Vec<(String, String, Value)> {
    let messages = body["messages"].as_array().unwrap().iter().enumerate();
    let blocks = messages.flat_map(|(index, message)| {
        let role = message["role"].as_str().unwrap().to_owned();
        let blocks = message["content"].as_array().unwrap().iter().enumerate();
        blocks.map(move |(at, block)| {
            (format!("messages.{index}.content.{at}"), role.clone(), block.clone())
        })
    });
    blocks.collect()
}
