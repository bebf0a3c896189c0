//! The rules that every reply has to meet, whatever a server sends.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use helix_agents_core::error::{Error, ErrorCode, ErrorRecord};
use helix_agents_core::event::{Event, ModelReply, encode};
use helix_agents_core::llm::{LlmResponse, LlmSink};
use helix_agents_core::message::{AssistantMessage, ReplyPart};
use helix_agents_core::step::{ParsedToolCall, StepResult};
use serde::de::IgnoredAny;
use serde_json::Value;

/// A broken rule, or nothing.
pub(crate) type Checked<T = ()> = Result<T, String>;

/// A sink that checks the order of what it receives.
#[derive(Debug, Default)]
pub(crate) struct Listener(Mutex<Heard>);

#[derive(Debug, Default)]
struct Heard {
    started: BTreeSet<u32>,
    /// The ids of the complete calls.
    calls: Vec<String>,
    failed: bool,
    problem: Option<String>,
}

impl Listener {
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    fn check(&mut self, is_met: bool, problem: &str) {
        if !is_met && self.problem.is_none() {
            self.problem = Some(problem.to_owned());
        }
    }
}

impl LlmSink for Listener {
    fn text_delta(&self, delta: &str) {
        self.lock().check(!delta.is_empty(), "the sink received an empty text");
    }

    fn thinking(&self, content: &str, _: bool) {
        self.lock().check(!content.is_empty(), "the sink received empty reasoning");
    }

    fn tool_call_start(&self, index: u32, _: &str) {
        let mut heard = self.lock();
        let is_new = heard.started.insert(index);
        heard.check(is_new, "the sink received the start of a call twice");
    }

    fn tool_call_delta(&self, index: u32, _: &str) {
        let mut heard = self.lock();
        let is_started = heard.started.contains(&index);
        heard.check(is_started, "the sink received a piece of a call that had not started");
    }

    fn tool_call(&self, call: &ParsedToolCall) {
        self.lock().calls.push(call.id.to_string());
    }

    fn error(&self, _: &Error) {
        let mut heard = self.lock();
        let is_first = !std::mem::replace(&mut heard.failed, true);
        heard.check(is_first, "the sink received two errors");
    }
}

/// Checks the end of a call. Returns the message of an accepted reply, if it has one.
pub(crate) fn response(
    result: Result<LlmResponse, Error>,
    listener: &Listener,
) -> Checked<Option<AssistantMessage>> {
    let response = result.map_err(|error| format!("the call failed: {error}"))?;
    let heard = listener.lock();
    if let Some(problem) = &heard.problem {
        return Err(problem.clone());
    }
    if let StepResult::Error { error, .. } = &response.result {
        failure(error)?;
    } else if heard.failed {
        return Err("the sink received an error of a call that succeeded".to_owned());
    }
    if let StepResult::ToolCalls { tool_calls, sub_agent_calls, .. } = &response.result {
        let ids = tool_calls.iter().map(|call| &call.id);
        let ids: Vec<String> = ids
            .chain(sub_agent_calls.iter().map(|call| &call.id))
            .map(ToString::to_string)
            .collect();
        calls(&ids, tool_calls)?;
        let sorted = |mut ids: Vec<String>| {
            ids.sort();
            ids
        };
        if sorted(ids) != sorted(heard.calls.clone()) {
            return Err("the sink received other calls than the reply has".to_owned());
        }
    }
    let reply = ModelReply::from_response(1, response, 0);
    stored(&reply)?;
    let message = reply.message.as_deref().cloned();
    if let Some(message) = &message {
        parts(message)?;
    }
    Ok(message)
}

fn failure(error: &ErrorRecord) -> Checked {
    if ErrorCode::ALL.iter().all(|code| code.as_str() != &*error.code) {
        return Err(format!("the error has the unknown code `{}`", error.code));
    }
    if error.message.is_empty() {
        return Err("the error has no message".to_owned());
    }
    Ok(())
}

fn calls(ids: &[String], calls: &[ParsedToolCall]) -> Checked {
    if ids.iter().any(String::is_empty) {
        return Err("a call has no id".to_owned());
    }
    let distinct: BTreeSet<&String> = ids.iter().collect();
    if distinct.len() < ids.len() {
        return Err("two calls have the same id".to_owned());
    }
    if calls.iter().any(|call| call.name.is_empty()) {
        return Err("a call has no name".to_owned());
    }
    Ok(())
}

/// Checks that the reply is read back from the log as it was written.
fn stored(reply: &ModelReply) -> Checked {
    let event = Event::from(reply.clone());
    let encoded = encode(std::slice::from_ref(&event));
    let encoded = encoded.map_err(|error| format!("the reply cannot be stored: {error}"))?;
    let decoded: Vec<Event> = serde_json::from_slice(&encoded)
        .map_err(|error| format!("the stored reply cannot be read: {error}"))?;
    if decoded != [event] {
        return Err("the stored reply is read as another one".to_owned());
    }
    Ok(())
}

/// Checks that the parts of a reply have the same text and calls as the reply.
fn parts(message: &AssistantMessage) -> Checked {
    let (mut text, mut calls) = (String::new(), BTreeSet::new());
    for part in message.parts() {
        match part {
            ReplyPart::Text { text: piece, .. } => text.push_str(piece),
            ReplyPart::Call { call, .. } => {
                calls.insert(call.id.to_string());
            }
            _ => {}
        }
    }
    if text != message.content.as_deref().unwrap_or_default() {
        return Err("the parts of the reply have another text than the reply".to_owned());
    }
    if calls.len() != message.tool_calls.len() {
        return Err("the parts of the reply have other calls than the reply".to_owned());
    }
    Ok(())
}

/// Checks the request that sends a reply back.
pub(crate) fn request(body: &[u8], message: &AssistantMessage) -> Checked {
    let body: Value = match serde_json::from_slice(body) {
        Ok(body) => body,
        // JSON may be nested more deeply than this type allows.
        Err(error)
            if error.to_string().contains("recursion limit")
                && str::from_utf8(body).is_ok()
                && serde_json::from_slice::<IgnoredAny>(body).is_ok() =>
        {
            return Ok(());
        }
        Err(error) => {
            return Err(format!("the request that sends the reply back is not JSON: {error}"));
        }
    };
    let mut sent = 0;
    for arguments in sent_arguments(&body) {
        sent += 1;
        let is_object = match arguments {
            Value::String(text) => {
                serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
            }
            arguments => arguments.is_object(),
        };
        if !is_object {
            return Err("the arguments of a call are sent back as something other than an object"
                .to_owned());
        }
    }
    let calls = message.tool_calls.len();
    if sent < calls {
        return Err(format!("{sent} of {calls} calls are sent back"));
    }
    Ok(())
}

/// Returns the arguments of all calls in a request.
fn sent_arguments(body: &Value) -> Vec<&Value> {
    let lists =
        ["messages", "contents", "input"].into_iter().filter_map(|name| body.get(name)?.as_array());
    let mut found = Vec::new();
    for message in lists.flatten() {
        let parts = ["content", "parts", "tool_calls"].into_iter();
        let parts = parts.filter_map(|name| message.get(name)?.as_array()).flatten();
        for part in parts.chain([message]) {
            let is = |kind: &str| part.get("type").is_some_and(|found| found == kind);
            let arguments = [
                part.pointer("/function/arguments"),
                part.pointer("/toolUse/input"),
                part.pointer("/functionCall/args"),
                part.get("arguments").filter(|_| is("function_call")),
                part.get("input").filter(|_| is("tool_use")),
            ];
            found.extend(arguments.into_iter().flatten());
        }
    }
    found
}
