//! The rules of the Messages API of Anthropic.

use std::collections::BTreeSet;

use helix_agents_llm::ApiFormat;
use serde_json::{Value, json};

use super::seal::{self, Verdict};
use super::{BINDING, BINDING_BETA, Part, Request, Rules, event};

/// Models that reject a forced call of a tool.
const UNFORCED: [&str; 6] = [
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5-1",
    "claude-mythos-5-2",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
];

/// Beta features that the server knows.
const BETAS: [&str; 2] = [BINDING_BETA, "files-api-2025-04-14"];

/// The Messages API for one account.
pub(crate) struct Messages {
    account: &'static str,
    containers: BTreeSet<String>,
    dropped: Vec<String>,
}

/// A content block of the conversation.
#[derive(Debug, Clone)]
struct Place {
    path: String,
    role: String,
    block: Value,
    is_last: bool,
}

impl Messages {
    pub(crate) fn of(account: &'static str) -> Self {
        Self { account, containers: BTreeSet::new(), dropped: Vec::new() }
    }

    fn check_reasoning(&mut self, body: &Value, places: &[Place]) -> Result<(), String> {
        let model = body["model"].as_str().unwrap();
        let drops = body["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
        let mut before = beginning(body);
        for place in places {
            if let Some((text, signature)) = signed(&place.block) {
                let invalid = format!("{}: Invalid `signature` in `thinking` block.", place.path);
                match seal::verify((self.account, model), &before, text, signature) {
                    Verdict::Forged => return Err(invalid),
                    Verdict::Moved if BINDING.contains(&model) && !drops => {
                        return Err(format!(
                            "{invalid} The block is bound to a different conversation."
                        ));
                    }
                    Verdict::Moved if BINDING.contains(&model) => {
                        self.dropped.push(place.path.clone());
                    }
                    Verdict::OtherModel => self.dropped.push(place.path.clone()),
                    Verdict::Moved | Verdict::Valid => {}
                }
            }
            before.push(json!([place.role, place.block]));
        }
        Ok(())
    }

    fn check_container(&self, body: &Value, places: &[Place]) -> Result<(), String> {
        let container = &body["container"];
        let id = container.as_str().or_else(|| container["id"].as_str());
        let waits = unanswered(places).next().is_some();
        match id {
            None if waits => {
                Err("container_id is required when there are pending tool uses".into())
            }
            Some(id) if !self.containers.contains(id) => Err(format!("container {id} not found")),
            _ => Ok(()),
        }
    }
}

impl Rules for Messages {
    fn format(&self) -> ApiFormat {
        ApiFormat::AnthropicMessages
    }

    fn check(&mut self, request: &Request) -> Result<(), String> {
        self.dropped.clear();
        let body = request.json();
        let places = places(&body);
        check_version(request, &body, &places)?;
        check_betas(request, &body)?;
        check_tools(&body)?;
        check_order(&body, &places)?;
        check_breakpoints(&body)?;
        self.check_container(&body, &places)?;
        self.check_reasoning(&body, &places)
    }

    fn events(&mut self, request: &Request, parts: &[Part], pauses: bool) -> Vec<Vec<u8>> {
        let body = request.json();
        let model = body["model"].as_str().unwrap();
        let mut before = beginning(&body);
        before.extend(places(&body).iter().map(|place| json!([place.role, place.block])));
        let mut events = vec![json!({"type": "message_start",
            "message": {"type": "message", "model": model, "container": null, "usage": {"input_tokens": 9}}})];
        let mut has_code = false;
        for (index, part) in parts.iter().enumerate() {
            let sign = |text: &str| seal::sign(self.account, model, &before, text);
            let (start, deltas, whole) = block(*part, sign);
            has_code |= matches!(part, Part::Search(_) | Part::Found(_));
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": start}),
            );
            events.extend(deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
            events.push(json!({"type": "content_block_stop", "index": index}));
            before.push(json!(["assistant", whole]));
        }
        let container = has_code.then(|| {
            let id = format!("container_{}", self.containers.len() + 1);
            self.containers.insert(id.clone());
            json!({"id": id, "expires_at": "2027-01-01T00:00:00Z"})
        });
        let calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
        let stop = match (pauses, calls) {
            (true, _) => "pause_turn",
            (false, true) => "tool_use",
            (false, false) => "end_turn",
        };
        let delta = json!({"stop_reason": stop, "container": container});
        let usage = json!({"output_tokens": 4});
        events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
        events.push(json!({"type": "message_stop"}));
        events.iter().map(event).collect()
    }

    fn overload(&self) -> Vec<u8> {
        event(
            &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        )
    }

    fn dropped(&self) -> Vec<String> {
        self.dropped.clone()
    }
}

/// Returns the start of a block, its pieces, and the whole block.
fn block(part: Part, sign: impl Fn(&str) -> String) -> (Value, Vec<Value>, Value) {
    match part {
        Part::Thinking(text) => {
            let signature = sign(text);
            let mut deltas = vec![json!({"type": "signature_delta", "signature": signature})];
            if !text.is_empty() {
                deltas.insert(0, json!({"type": "thinking_delta", "thinking": text}));
            }
            let start = json!({"type": "thinking", "thinking": ""});
            (start, deltas, json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        Part::Redacted(_) => {
            let whole = json!({"type": "redacted_thinking", "data": sign("")});
            (whole.clone(), Vec::new(), whole)
        }
        Part::Text(text) => {
            let deltas = vec![json!({"type": "text_delta", "text": text})];
            (json!({"type": "text", "text": ""}), deltas, json!({"type": "text", "text": text}))
        }
        Part::Call(id) => {
            let call = |input: Value| json!({"type": "tool_use", "id": id, "name": "lookup", "input": input});
            let deltas = vec![json!({"type": "input_json_delta", "partial_json": "{\"key\":1}"})];
            (call(json!({})), deltas, call(json!({"key": 1})))
        }
        Part::Search(id) => {
            let whole = json!({"type": "server_tool_use", "id": id, "name": "code_execution",
                "input": {"code": "1"}});
            (whole.clone(), Vec::new(), whole)
        }
        Part::Found(id) => {
            let whole = json!({"type": "code_execution_tool_result", "tool_use_id": id,
                "content": {"stdout": "1"}});
            (whole.clone(), Vec::new(), whole)
        }
    }
}

/// Returns the part of a request before the conversation.
fn beginning(body: &Value) -> Vec<Value> {
    vec![unmarked(&body["system"]), unmarked(&body["tools"])]
}

/// Returns the content blocks of the conversation.
fn places(body: &Value) -> Vec<Place> {
    let messages = body["messages"].as_array().unwrap();
    let mut places = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array().unwrap();
        for (at, block) in blocks.iter().enumerate() {
            places.push(Place {
                path: format!("messages.{index}.content.{at}"),
                role: message["role"].as_str().unwrap().to_owned(),
                block: unmarked(block),
                is_last: at + 1 == blocks.len(),
            });
        }
    }
    places
}

/// Returns a value without cache breakpoints.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(unmarked).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| *key != "cache_control");
            kept.map(|(key, value)| (key.clone(), value.clone())).collect()
        }
        other => other.clone(),
    }
}

/// Returns the text and the signature of reasoning.
fn signed(block: &Value) -> Option<(&str, &str)> {
    match block["type"].as_str()? {
        "thinking" => Some((block["thinking"].as_str()?, block["signature"].as_str()?)),
        "redacted_thinking" => Some(("", block["data"].as_str()?)),
        _ => None,
    }
}

/// Returns the calls of the provider's tools without a result.
fn unanswered(places: &[Place]) -> impl Iterator<Item = (usize, &Place)> {
    places.iter().enumerate().filter(|(_, place)| {
        let id = &place.block["id"];
        place.block["type"] == "server_tool_use"
            && !places.iter().any(|result| result.block["tool_use_id"] == *id)
    })
}

fn check_version(request: &Request, body: &Value, places: &[Place]) -> Result<(), String> {
    match request.header("anthropic-version").as_deref() {
        Some("2023-06-01") => return Ok(()),
        Some("2026-10-21") => {}
        version => return Err(format!("unknown version {version:?}")),
    }
    let settings = ["temperature", "top_p", "top_k"];
    if let Some(setting) = settings.into_iter().find(|setting| body.get(setting).is_some()) {
        return Err(format!("{setting}: Extra inputs are not permitted"));
    }
    let is_rejected = |place: &&Place| match place.role.as_str() {
        "assistant" => place.block["type"] == "document",
        _ => place.block["type"] == "text" && place.block.get("citations").is_some(),
    };
    match places.iter().find(is_rejected) {
        Some(place) => Err(format!("{}: not permitted in this version", place.path)),
        None => Ok(()),
    }
}

fn check_betas(request: &Request, body: &Value) -> Result<(), String> {
    let header = request.header("anthropic-beta").unwrap_or_default();
    let betas: Vec<&str> =
        header.split(',').map(str::trim).filter(|beta| !beta.is_empty()).collect();
    if let Some(unknown) = betas.iter().find(|beta| !BETAS.contains(beta)) {
        return Err(format!("unexpected value `{unknown}` for `anthropic-beta`"));
    }
    let thinking = &body["thinking"];
    match (thinking.get("block_binding"), thinking["type"].as_str()) {
        (Some(_), Some("disabled" | "between_tools")) => {
            Err("thinking.block_binding: Extra inputs are not permitted".into())
        }
        (Some(_), _) if !betas.contains(&BINDING_BETA) => {
            Err(format!("thinking.block_binding requires the beta {BINDING_BETA}"))
        }
        _ => Ok(()),
    }
}

fn check_tools(body: &Value) -> Result<(), String> {
    let is_forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    if is_forced && UNFORCED.contains(&body["model"].as_str().unwrap()) {
        return Err("tool_choice: this model does not support forced tools".into());
    }
    if is_forced && body["thinking"]["type"] == "enabled" {
        return Err("Thinking may not be enabled when tool_choice forces tool use.".into());
    }
    Ok(())
}

fn check_order(body: &Value, places: &[Place]) -> Result<(), String> {
    let roles = body["messages"].as_array().unwrap().iter().map(|message| &message["role"]);
    if roles.clone().zip(roles.skip(1)).any(|(role, next)| role == next) {
        return Err("messages: roles must alternate".into());
    }
    for place in places {
        if place.block["type"] == "text" && place.block["text"].as_str().unwrap().trim().is_empty()
        {
            return Err(format!("{}: text content blocks must be non-empty", place.path));
        }
    }
    for (index, place) in places.iter().enumerate() {
        let id = &place.block["id"];
        let mut rest = places[index + 1..].iter().skip_while(|next| next.role == "assistant");
        if place.block["type"] == "tool_use" && !rest.any(|next| next.block["tool_use_id"] == *id) {
            return Err(format!("{}: `tool_use` without `tool_result`", place.path));
        }
    }
    let last = places.last().unwrap();
    let is_paused = unanswered(places).next().is_some();
    for (index, place) in unanswered(places) {
        // Only the end of the conversation, or the results of calls, may follow.
        let follows = |next: &Place| next.role == "user" && next.block["type"] != "tool_result";
        if places[index..].iter().any(follows) {
            return Err(format!("{}: tool use was found without a result block", place.path));
        }
    }
    if last.role == "assistant" && !is_paused {
        return Err("This model does not support assistant message prefill.".into());
    }
    let ends_with_reasoning = |place: &&Place| {
        place.role == "assistant" && place.is_last && signed(&place.block).is_some()
    };
    match places.iter().find(ends_with_reasoning) {
        Some(place) if !is_paused => {
            Err(format!("{}: the final block cannot be `thinking`", place.path))
        }
        _ => Ok(()),
    }
}

fn check_breakpoints(body: &Value) -> Result<(), String> {
    let lists = [&body["system"], &body["tools"]].into_iter();
    let contents = body["messages"].as_array().unwrap().iter().map(|message| &message["content"]);
    let blocks = lists.chain(contents).filter_map(Value::as_array).flatten();
    let marked: Vec<&Value> = blocks.filter(|block| block.get("cache_control").is_some()).collect();
    if marked.len() > 4 {
        return Err("a maximum of 4 blocks with cache_control may be provided".into());
    }
    match marked.iter().any(|block| signed(block).is_some()) {
        true => Err("cache_control cannot be set for thinking blocks".into()),
        false => Ok(()),
    }
}
