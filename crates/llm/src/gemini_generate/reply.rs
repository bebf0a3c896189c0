//! A reply, assembled from the documents of a stream or from a single one.

use std::cell::LazyCell;
use std::sync::Arc;

use helix_agents_core::llm::{LlmResponse, LlmSink, ReplyBuilder};
use helix_agents_core::step::StopReason;
use helix_agents_core::usage::Usage;
use serde_json::value::RawValue;

use super::part::{CallPart, Kind, Part};
use super::partial_arguments;
use super::wire::{Document, RawParts, WireUsage};
use crate::attempt::{Progress, Reading, ReplyReader};
use crate::failure::Failure;
use crate::response_id;

/// The maximum number of parts of a reply.
const MAX_PARTS: usize = 10_000;

/// The error for a reply that ends because the request lacks a signature. The same request would fail again.
const MISSING_SIGNATURE: &str = r#"{"code":"MISSING_THOUGHT_SIGNATURE","status":400,
    "message":"a call in the conversation has no thought signature"}"#;

/// The reply so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    parts: Vec<Part>,
    calls: u32,
    /// The reason why the model stopped, or why the prompt was blocked.
    finish: Option<String>,
    usage: WireUsage,
    model: Option<Arc<str>>,
    id: Option<String>,
    delivered: bool,
    /// Whether a part arrived after the last finish reason.
    has_late_parts: bool,
}

impl ReplyReader for Reply {
    fn event(
        &mut self,
        data: &[u8],
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let data = data.trim_ascii();
        if data.is_empty() {
            return Ok(());
        }
        self.add(data, false, reading, sink)
    }

    fn document(
        &mut self,
        body: &[u8],
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        // Without server-sent events, a streamed reply is a list of its documents.
        if body.trim_ascii_start().starts_with(b"[") {
            let list: Vec<&RawValue> = serde_json::from_slice(body)
                .map_err(|_| reading.subject.protocol("sent a list that contains no reply"))?;
            for document in list {
                self.add(document.get().as_bytes(), true, reading, sink)?;
            }
        } else {
            self.add(body, true, reading, sink)?;
        }
        if self.finish.is_none() && self.parts.is_empty() {
            return Err(reading.subject.protocol("sent a document that contains no reply"));
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        // Further parts and a second finish reason may follow the first one.
        if self.finish.is_some() { Progress::Finished } else { Progress::Open }
    }

    fn is_whole(&self) -> bool {
        let is_open = |part: &Part| matches!(&part.kind, Kind::Call(call) if call.will_continue);
        !self.has_late_parts && !self.parts.iter().any(is_open)
    }

    fn is_delivered(&self) -> bool {
        self.delivered
    }

    fn usage(&self) -> Usage {
        self.usage.into()
    }

    fn end(self, reading: &Reading<'_>, sink: &dyn LlmSink) -> Result<LlmResponse, Failure> {
        match self.finish.as_deref() {
            Some("MISSING_THOUGHT_SIGNATURE") => {
                return Err(reading.subject.reported(MISSING_SIGNATURE, &reading.redactor));
            }
            Some(reason) if is_malformed(reason) => {
                return Err(reading.subject.malformed(reason, &reading.redactor));
            }
            _ => {}
        }
        let mut parts = ReplyBuilder::after_messages(reading.messages);
        self.parts.into_iter().for_each(|part| part.add_to(&mut parts));
        parts.calls().iter().for_each(|call| sink.tool_call(call));
        let stop_reason = match self.finish.as_deref().map(stop_reason) {
            Some(StopReason::EndTurn) | None if !parts.calls().is_empty() => {
                Some(StopReason::ToolUse)
            }
            reason => reason,
        };
        let layout = parts.layout(Arc::clone(reading.data_owner), reading.subject.model);
        let result = parts.into_result(stop_reason, reading.structured);
        let mut response = LlmResponse::new(result, self.usage.into());
        response.layout = layout;
        response.model = self.model;
        response.response_id = self.id;
        response.raw_stop_reason = self.finish;
        Ok(response)
    }
}

impl Reply {
    fn add(
        &mut self,
        json: &[u8],
        whole: bool,
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let garbage = || reading.subject.protocol("sent something that is not a part of a reply");
        let json = std::str::from_utf8(json).map_err(|_| garbage())?;
        let document: Document<'_> = serde_json::from_str(json).map_err(|_| garbage())?;
        if let Some(error) = document.error {
            return Err(reading.subject.reported(error.get(), &reading.redactor));
        }
        self.usage.update(document.usage_metadata.unwrap_or_default());
        if self.model.is_none() {
            self.model = document.model_version.as_deref().map(Arc::from);
        }
        if self.id.is_none() {
            self.id = document.response_id.as_deref().and_then(response_id::recordable);
        }
        let blocked = document.prompt_feedback.and_then(|feedback| feedback.block_reason);
        self.finish = self.finish.take().or(blocked.map(Into::into));
        // Other candidates are alternatives to the first.
        // For all parts that are data: a document may have thousands.
        let raw = LazyCell::new(|| serde_json::from_str::<RawParts<'_>>(json).ok());
        let candidates = document.candidates.into_iter().flatten().enumerate();
        for (place, candidate) in candidates.filter(|(_, other)| other.index.unwrap_or(0) == 0) {
            let parts = candidate.content.and_then(|content| content.parts);
            for (index, part) in parts.into_iter().flatten().enumerate() {
                let part = Part::new(part, || raw.as_ref()?.get(place, index));
                let part = part.ok_or_else(garbage)?;
                if self.parts.len() >= MAX_PARTS {
                    return Err(reading.subject.protocol("sent more parts than a reply can have"));
                }
                self.has_late_parts = self.finish.is_some();
                self.part(part, whole, sink);
            }
            if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
                self.has_late_parts = false;
                // A failure is not undone by a later `STOP`.
                if self.finish.as_deref().is_none_or(|finish| finish == "STOP") {
                    self.finish = Some(reason.into_owned());
                }
            }
        }
        Ok(())
    }

    fn part(&mut self, part: Part, whole: bool, sink: &dyn LlmSink) {
        match &part.kind {
            Kind::Text(text) if !text.is_empty() => {
                self.delivered = true;
                sink.text_delta(text);
            }
            Kind::Thinking(text) if !text.is_empty() => {
                self.delivered = true;
                sink.thinking(text, whole);
            }
            Kind::Call(call) if call.is_piece() => return self.piece(call),
            Kind::Call(call) => {
                self.delivered = true;
                sink.tool_call_start(self.calls, &call.name);
                self.calls += 1;
            }
            _ => {}
        }
        let part = match self.parts.last_mut() {
            Some(last) => last.join(part),
            None => Some(part),
        };
        self.parts.extend(part);
        if let Some(Part { kind: Kind::Call(call), .. }) = self.parts.last_mut() {
            apply_pieces(call);
        }
    }

    /// Adds a piece to the last call, if its arguments are not complete.
    fn piece(&mut self, piece: &CallPart) {
        if let Some(Part { kind: Kind::Call(call), .. }) = self.parts.last_mut()
            && call.will_continue
        {
            for piece in &piece.pieces {
                partial_arguments::add(&mut call.arguments, piece);
            }
            call.will_continue = piece.will_continue;
        }
    }
}

fn apply_pieces(call: &mut CallPart) {
    for piece in std::mem::take(&mut call.pieces) {
        partial_arguments::add(&mut call.arguments, &piece);
    }
}

fn stop_reason(raw: &str) -> StopReason {
    match raw {
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY"
        | "LANGUAGE" | "MODEL_ARMOR" | "JAILBREAK" => StopReason::ContentFilter,
        _ => StopReason::Unknown,
    }
}

/// Returns `true` if the server could not use what the model wrote. Calls in such a reply are not complete.
fn is_malformed(raw: &str) -> bool {
    let reasons = [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MALFORMED_RESPONSE",
    ];
    reasons.contains(&raw)
}
