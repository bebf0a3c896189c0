//! A reply, assembled from the events of a stream or from a complete response.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmResponse, LlmSink, ReplyBuilder};
use helix_agents_core::message::Arguments;
use helix_agents_core::step::{ParsedToolCall, StopReason};
use helix_agents_core::usage::Usage;
use serde_json::json;

use super::wire::{Block, Delta, Exception, Frame, Response, ToolUse, WireUsage};
use crate::attempt::{Progress, Reading, ReplyReader};
use crate::failure::Failure;

/// The maximum number of blocks of a reply.
const MAX_BLOCKS: usize = 10_000;

/// The reply so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The blocks by index.
    blocks: BTreeMap<u64, Part>,
    calls: u32,
    stop: Option<String>,
    usage: WireUsage,
    delivered: bool,
    done: bool,
}

/// A content block, while it arrives.
#[derive(Debug)]
enum Part {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    /// The pieces of reasoning that only the provider can read, as base64.
    Redacted(Vec<String>),
    Call {
        id: String,
        name: String,
        arguments: String,
        /// The position among the calls.
        position: u32,
    },
    /// A block of another kind.
    Opaque(Json),
}

impl ReplyReader for Reply {
    fn event(
        &mut self,
        data: &[u8],
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let garbage = || reading.subject.protocol("sent something that is not an event of a reply");
        let frame: Frame<'_> = serde_json::from_slice(data).map_err(|_| garbage())?;
        if let Some(exception) = &frame.exception {
            return Err(reported(&frame.kind, exception, reading));
        }
        let Some(event) = frame.event else { return Ok(()) };
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(reading.subject.protocol("sent more blocks than a reply can have"));
        }
        match &*frame.kind {
            "contentBlockStart" => {
                if let Some(call) = event.start.and_then(|start| start.tool_use) {
                    self.start_call(event.content_block_index, &call, sink);
                }
            }
            "contentBlockDelta" => {
                if let Some(delta) = &event.delta {
                    self.piece(event.content_block_index, delta, sink);
                }
            }
            "messageStop" => self.stop = event.stop_reason.map(Into::into),
            // The last event.
            "metadata" => {
                self.usage = event.usage.unwrap_or_default();
                self.done = self.stop.is_some();
            }
            _ => {}
        }
        Ok(())
    }

    fn document(
        &mut self,
        body: &[u8],
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let garbage = || reading.subject.protocol("sent a document that contains no reply");
        let response: Response<'_> = serde_json::from_slice(body).map_err(|_| garbage())?;
        let message = response.output.message.ok_or_else(garbage)?;
        for (index, raw) in (0..).zip(message.content.into_iter().take(MAX_BLOCKS)) {
            let block: Block<'_> = serde_json::from_str(raw.get()).map_err(|_| garbage())?;
            self.block(index, &block, sink);
            if let Entry::Vacant(place) = self.blocks.entry(index) {
                let data = Json::parse(raw.get()).map_err(|_| garbage())?;
                place.insert(Part::Opaque(data));
            }
        }
        self.stop = response.stop_reason.map(Into::into);
        self.usage = response.usage.unwrap_or_default();
        self.done = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        match (self.done, &self.stop) {
            (true, _) => Progress::Done,
            (false, Some(_)) => Progress::Finished,
            (false, None) => Progress::Open,
        }
    }

    fn is_delivered(&self) -> bool {
        self.delivered
    }

    fn usage(&self) -> Usage {
        self.usage.into()
    }

    fn end(self, reading: &Reading<'_>, sink: &dyn LlmSink) -> Result<LlmResponse, Failure> {
        if let Some(reason) = self.stop.as_deref().filter(|reason| is_malformed(reason)) {
            return Err(reading.subject.malformed(reason, &reading.redactor));
        }
        let mut parts = ReplyBuilder::after_messages(reading.messages);
        for part in self.blocks.into_values() {
            match part {
                Part::Text(text) => parts.text(&text, None),
                Part::Thinking { text, signature } => {
                    let data = (!signature.is_empty()).then(|| json!({ "signature": signature }));
                    parts.thinking(&text, data.map(Json::from));
                }
                Part::Redacted(pieces) => {
                    let content = joined(&pieces);
                    let block = json!({"reasoningContent": {"redactedContent": content}});
                    parts.opaque(Json::from(block));
                }
                Part::Call { name, .. } if name.is_empty() => {
                    return Err(reading.subject.protocol("sent a call without a name"));
                }
                Part::Call { id, name, arguments, .. } => {
                    let arguments = Arguments::parse(&arguments);
                    parts.call(ParsedToolCall::new(&*id, &*name, arguments), None);
                }
                Part::Opaque(data) => parts.opaque(data),
            }
        }
        parts.calls().iter().for_each(|call| sink.tool_call(call));
        let stop_reason = match self.stop.as_deref().map(stop_reason) {
            Some(StopReason::EndTurn) if !parts.calls().is_empty() => Some(StopReason::ToolUse),
            reason => reason,
        };
        let layout = parts.layout(Arc::clone(reading.data_owner), reading.subject.model);
        let result = parts.into_result(stop_reason, reading.structured);
        let mut response = LlmResponse::new(result, self.usage.into());
        response.layout = layout;
        // Responses do not name the model.
        response.model = Some(reading.subject.model.into());
        response.raw_stop_reason = self.stop;
        Ok(response)
    }
}

impl Reply {
    fn start_call(&mut self, index: u64, call: &ToolUse<'_>, sink: &dyn LlmSink) {
        let position = self.calls;
        self.calls += 1;
        self.delivered = true;
        sink.tool_call_start(position, &call.name);
        let part = Part::Call {
            id: call.tool_use_id.to_string(),
            name: call.name.to_string(),
            arguments: call.input.map(|input| input.get().to_owned()).unwrap_or_default(),
            position,
        };
        self.blocks.insert(index, part);
    }

    /// Adds a piece of a block. Only calls announce their start, so the first piece of any other block creates it.
    fn piece(&mut self, index: u64, delta: &Delta<'_>, sink: &dyn LlmSink) {
        if let Some(piece) = &delta.text {
            self.text(index, piece, sink);
        }
        if let (Some(piece), Some(Part::Call { arguments, position, .. })) =
            (&delta.tool_use, self.blocks.get_mut(&index))
        {
            arguments.push_str(&piece.input);
            sink.tool_call_delta(*position, &piece.input);
        }
        let Some(reasoning) = &delta.reasoning_content else { return };
        if let Some(content) = &reasoning.redacted_content {
            self.redacted(index, content);
        }
        if reasoning.text.is_some() || reasoning.signature.is_some() {
            let text = reasoning.text.as_deref().unwrap_or_default();
            let signature = reasoning.signature.as_deref().unwrap_or_default();
            self.thinking(index, text, signature, false, sink);
        }
    }

    /// Adds a block of a complete response, unless its kind is unknown.
    fn block(&mut self, index: u64, block: &Block<'_>, sink: &dyn LlmSink) {
        if let Some(text) = &block.text {
            self.text(index, text, sink);
        }
        if let Some(call) = &block.tool_use {
            self.start_call(index, call, sink);
        }
        let Some(reasoning) = &block.reasoning_content else { return };
        if let Some(content) = &reasoning.redacted_content {
            self.redacted(index, content);
        }
        if let Some(reasoning) = &reasoning.reasoning_text {
            let text = reasoning.text.as_deref().unwrap_or_default();
            let signature = reasoning.signature.as_deref().unwrap_or_default();
            self.thinking(index, text, signature, true, sink);
        }
    }

    fn text(&mut self, index: u64, piece: &str, sink: &dyn LlmSink) {
        let part = self.blocks.entry(index).or_insert_with(|| Part::Text(String::new()));
        if let Part::Text(text) = part
            && !piece.is_empty()
        {
            text.push_str(piece);
            self.delivered = true;
            sink.text_delta(piece);
        }
    }

    fn thinking(
        &mut self,
        index: u64,
        piece: &str,
        signed: &str,
        complete: bool,
        sink: &dyn LlmSink,
    ) {
        let empty = || Part::Thinking { text: String::new(), signature: String::new() };
        if let Part::Thinking { text, signature } = self.blocks.entry(index).or_insert_with(empty) {
            text.push_str(piece);
            signature.push_str(signed);
            if !piece.is_empty() {
                self.delivered = true;
                sink.thinking(piece, complete);
            }
        }
    }

    fn redacted(&mut self, index: u64, piece: &str) {
        let part = self.blocks.entry(index).or_insert_with(|| Part::Redacted(Vec::new()));
        if let Part::Redacted(pieces) = part {
            pieces.push(piece.to_owned());
        }
    }
}

/// Joins the pieces of a content as base64. Each piece is base64 of its own and may end with padding.
fn joined(pieces: &[String]) -> String {
    let decoded: Result<Vec<_>, _> = pieces.iter().map(|piece| STANDARD.decode(piece)).collect();
    match decoded {
        Ok(bytes) if pieces.len() > 1 => STANDARD.encode(bytes.concat()),
        // A single piece, or pieces that are not base64, are sent back as they are.
        _ => pieces.concat(),
    }
}

/// Returns the failure of an exception in the middle of a stream.
fn reported(kind: &str, exception: &Exception<'_>, reading: &Reading<'_>) -> Failure {
    let error = json!({"error": {"type": kind, "message": exception.message}});
    reading.subject.reported(&error.to_string(), &reading.redactor)
}

fn stop_reason(raw: &str) -> StopReason {
    match raw {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "guardrail_intervened" | "content_filtered" => StopReason::ContentFilter,
        _ => StopReason::Unknown,
    }
}

/// Returns `true` if the server could not use what the model wrote. Calls in such a reply are not complete.
fn is_malformed(raw: &str) -> bool {
    ["malformed_tool_use", "malformed_model_output"].contains(&raw)
}
