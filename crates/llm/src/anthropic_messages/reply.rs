//! A reply, assembled from the events of a stream or from a complete response.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmResponse, LlmSink, ReplyBuilder};
use helix_agents_core::step::StopReason;
use helix_agents_core::usage::Usage;
use serde_json::value::RawValue;

use super::block::{Block, Kind};
use super::container;
use super::wire::{Delta, Event, Message, WireUsage};
use crate::attempt::{Progress, Reading, ReplyReader};
use crate::failure::Failure;
use crate::response_id;

/// The maximum number of blocks of a reply.
const MAX_BLOCKS: usize = 10_000;

/// The reply so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The blocks by index. Each call has its position among the calls.
    blocks: BTreeMap<u64, (Block, u32)>,
    calls: u32,
    stop: Option<String>,
    usage: WireUsage,
    model: Option<Arc<str>>,
    id: Option<String>,
    container: Option<Json>,
    delivered: bool,
    done: bool,
}

impl ReplyReader for Reply {
    fn event(
        &mut self,
        data: &[u8],
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let data = data.trim_ascii();
        if self.done || data.is_empty() {
            return Ok(());
        }
        let garbage = || reading.subject.protocol("sent something that is not an event of a reply");
        let event: Event<'_> = serde_json::from_slice(data).map_err(|_| garbage())?;
        match &*event.kind {
            // Some gateways repeat the first event.
            "message_start" if self.model.is_none() => self.start(event.message.as_ref()),
            "content_block_start" => {
                let block = event.content_block.ok_or_else(garbage)?;
                let block = Block::parse(block).map_err(|_| garbage())?;
                if self.blocks.len() >= MAX_BLOCKS {
                    return Err(reading.subject.protocol("sent more blocks than a reply can have"));
                }
                self.begin(event.index, block, false, sink);
            }
            "content_block_delta" => {
                let delta = event.delta.as_ref().ok_or_else(garbage)?;
                self.piece(event.index, delta, sink);
            }
            "message_delta" => {
                if let Some(delta) = event.delta {
                    self.stop = delta.stop_reason.map(Into::into).or(self.stop.take());
                    self.note_container(delta.container);
                }
                self.usage.update(event.usage.unwrap_or_default());
            }
            "message_stop" => self.done = true,
            "error" => {
                let error = event.error.ok_or_else(garbage)?;
                return Err(reading.subject.reported(error.get(), &reading.redactor));
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
        let message: Message<'_> = serde_json::from_slice(body).map_err(|_| garbage())?;
        if let Some(error) = message.error {
            return Err(reading.subject.reported(error.get(), &reading.redactor));
        }
        if message.kind.as_deref() != Some("message") {
            return Err(garbage());
        }
        self.start(Some(&message));
        let blocks = message.content.into_iter().flatten().take(MAX_BLOCKS);
        for (index, block) in (0..).zip(blocks) {
            let block = Block::parse(block).map_err(|_| garbage())?;
            self.begin(index, block, true, sink);
        }
        self.stop = message.stop_reason.map(Into::into);
        self.done = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        match self.stop {
            _ if self.done => Progress::Done,
            // The last event contains nothing else, but without it the reply may be cut.
            _ => Progress::Open,
        }
    }

    fn is_delivered(&self) -> bool {
        self.delivered
    }

    fn usage(&self) -> Usage {
        self.usage.into()
    }

    fn end(self, reading: &Reading<'_>, sink: &dyn LlmSink) -> Result<LlmResponse, Failure> {
        let mut parts = ReplyBuilder::after_messages(reading.messages);
        for (block, _) in self.blocks.into_values() {
            if matches!(&block.kind, Kind::Call { name, .. } if name.is_empty()) {
                return Err(reading.subject.protocol("sent a call without a name"));
            }
            block.end(&mut parts);
        }
        if let Some(container) = self.container {
            parts.opaque(container);
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
        response.model = self.model;
        response.response_id = self.id;
        response.raw_stop_reason = self.stop;
        Ok(response)
    }
}

impl Reply {
    fn start(&mut self, message: Option<&Message<'_>>) {
        let Some(message) = message else { return };
        self.model = message.model.as_deref().map(Arc::from);
        self.id = message.id.as_deref().and_then(response_id::recordable);
        self.note_container(message.container);
        self.usage.update(message.usage.unwrap_or_default());
    }

    fn note_container(&mut self, container: Option<&RawValue>) {
        self.container = container.and_then(container::part).or(self.container.take());
    }

    /// Adds a block. A `complete` block is delivered as a whole.
    fn begin(&mut self, index: u64, block: Block, complete: bool, sink: &dyn LlmSink) {
        let position = self.calls;
        match &block.kind {
            Kind::Text(text) if !text.is_empty() => {
                self.delivered = true;
                sink.text_delta(text);
            }
            Kind::Thinking(text) if !text.is_empty() => {
                self.delivered = true;
                sink.thinking(text, complete);
            }
            Kind::Call { name, .. } => {
                self.delivered = true;
                self.calls += 1;
                sink.tool_call_start(position, name);
            }
            _ => {}
        }
        self.blocks.insert(index, (block, position));
    }

    fn piece(&mut self, index: u64, delta: &Delta<'_>, sink: &dyn LlmSink) {
        let Some((block, position)) = self.blocks.get_mut(&index) else { return };
        match (&block.kind, &delta.text, &delta.thinking, &delta.partial_json) {
            (Kind::Text(_), Some(piece), ..) if !piece.is_empty() => {
                self.delivered = true;
                sink.text_delta(piece);
            }
            (Kind::Thinking(_), _, Some(piece), _) if !piece.is_empty() => {
                self.delivered = true;
                sink.thinking(piece, false);
            }
            (Kind::Call { .. }, _, _, Some(piece)) if !piece.is_empty() => {
                sink.tool_call_delta(*position, piece);
            }
            _ => {}
        }
        block.add(delta);
    }
}

fn stop_reason(raw: &str) -> StopReason {
    match raw {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Pause,
        _ => StopReason::Unknown,
    }
}
