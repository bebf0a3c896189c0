//! A reply, assembled from the events of a stream or from a complete response.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::llm::{LlmResponse, LlmSink, ReplyBuilder};
use helix_agents_core::step::StopReason;
use helix_agents_core::usage::Usage;

use super::API;
use super::item::Item;
use super::wire::{Event, ItemStart, Response, WireUsage};
use crate::attempt::{Progress, Reading, ReplyReader};
use crate::failure::Failure;
use crate::reply_data;

/// The maximum number of items of a reply.
const MAX_ITEMS: usize = 10_000;

/// The reply so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The complete items by index. Ids are unreliable: gateways change them between the events of one item.
    items: BTreeMap<u64, Item>,
    /// The calls by index, from their start until they are complete.
    open_calls: BTreeMap<u64, OpenCall>,
    calls: u32,
    /// The status, or the reason why the response is incomplete.
    finish: Option<String>,
    usage: WireUsage,
    model: Option<Arc<str>>,
    delivered: bool,
    done: bool,
}

/// A call whose arguments arrive.
#[derive(Debug)]
struct OpenCall {
    position: u32,
    name: String,
    arguments: String,
}

impl ReplyReader for Reply {
    fn event(
        &mut self,
        data: &[u8],
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let data = data.trim_ascii();
        if self.done || data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let garbage = || reading.subject.protocol("sent something that is not an event of a reply");
        let json = std::str::from_utf8(data).map_err(|_| garbage())?;
        let event: Event<'_> = serde_json::from_str(json).map_err(|_| garbage())?;
        let delta = event.delta.as_deref().unwrap_or_default();
        match &*event.kind {
            "response.created" | "response.in_progress" => self.note_model(event.response.as_ref()),
            "response.output_item.added" => {
                let item = event.item.ok_or_else(garbage)?;
                let item: ItemStart<'_> =
                    serde_json::from_str(item.get()).map_err(|_| garbage())?;
                self.start(event.output_index, &item, sink);
            }
            "response.output_item.done" => {
                let item = event.item.ok_or_else(garbage)?;
                let item = Item::parse(item).map_err(|_| garbage())?;
                if self.items.len() >= MAX_ITEMS {
                    return Err(reading.subject.protocol("sent more items than a reply can have"));
                }
                self.open_calls.remove(&event.output_index);
                self.items.insert(event.output_index, item);
            }
            "response.output_text.delta" | "response.refusal.delta" if !delta.is_empty() => {
                self.delivered = true;
                sink.text_delta(delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta"
                if !delta.is_empty() =>
            {
                self.delivered = true;
                sink.thinking(delta, false);
            }
            "response.function_call_arguments.delta" if !delta.is_empty() => {
                if let Some(call) = self.open_calls.get_mut(&event.output_index) {
                    call.arguments.push_str(delta);
                    sink.tool_call_delta(call.position, delta);
                }
            }
            "response.completed" | "response.incomplete" => {
                self.complete(event.response.ok_or_else(garbage)?);
            }
            "response.failed" => {
                let error = event.response.and_then(|response| response.error);
                let error = error.map_or(json, |error| error.get());
                return Err(reading.subject.reported(error, &reading.redactor));
            }
            "error" => return Err(reading.subject.reported(json, &reading.redactor)),
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
        let json = std::str::from_utf8(body).map_err(|_| garbage())?;
        let response: Response<'_> = serde_json::from_str(json).map_err(|_| garbage())?;
        if let Some(error) = response.error {
            return Err(reading.subject.reported(error.get(), &reading.redactor));
        }
        if response.object.as_deref() != Some("response") {
            return Err(garbage());
        }
        self.note_model(Some(&response));
        for (index, item) in (0..).zip(response.output.iter().flatten().take(MAX_ITEMS)) {
            let item = Item::parse(item).map_err(|_| garbage())?;
            self.deliver(&item, sink);
            self.items.insert(index, item);
        }
        self.complete(response);
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.done { Progress::Done } else { Progress::Open }
    }

    fn is_delivered(&self) -> bool {
        self.delivered
    }

    fn usage(&self) -> Usage {
        self.usage.into()
    }

    fn end(mut self, reading: &Reading<'_>, sink: &dyn LlmSink) -> Result<LlmResponse, Failure> {
        // A call that the token limit cut has no complete item.
        for (index, call) in std::mem::take(&mut self.open_calls) {
            let cut = Item::Call {
                id: format!("call_{}_{index}", reading.messages),
                name: call.name,
                arguments: call.arguments,
                members: serde_json::Map::default(),
            };
            self.items.insert(index, cut);
        }
        let is_refusal =
            |item: &Item| matches!(item, Item::Message { refusal, .. } if !refusal.is_empty());
        let refused = self.items.values().any(is_refusal);
        let is_nameless = |item: &Item| matches!(item, Item::Call { name, .. } if name.is_empty());
        if self.items.values().any(is_nameless) {
            return Err(reading.subject.protocol("sent a call without a name"));
        }
        let mut parts = ReplyBuilder::after(reading.messages);
        self.items.into_values().for_each(|item| item.add_to(&mut parts));
        parts.calls().iter().for_each(|call| sink.tool_call(call));
        let stop_reason = match self.finish.as_deref() {
            Some("completed") if refused => StopReason::Refusal,
            Some("completed") if !parts.calls().is_empty() => StopReason::ToolUse,
            Some("completed") => StopReason::EndTurn,
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::ContentFilter,
            _ => StopReason::Unknown,
        };
        let layout =
            parts.layout(&reply_data::name(API, reading.subject.provider), reading.subject.model);
        let result = parts.into_result(Some(stop_reason), reading.structured);
        let mut response = LlmResponse::new(result, self.usage.into());
        response.layout = layout;
        response.model = self.model;
        response.raw_stop_reason = self.finish;
        Ok(response)
    }
}

impl Reply {
    fn note_model(&mut self, response: Option<&Response<'_>>) {
        let model = response.and_then(|response| response.model.as_deref());
        self.model = model.map(Arc::from).or(self.model.take());
    }

    fn start(&mut self, index: u64, item: &ItemStart<'_>, sink: &dyn LlmSink) {
        if item.kind == "function_call" && self.open_calls.len() < MAX_ITEMS {
            let name = item.name.as_deref().unwrap_or_default().to_owned();
            let position = self.calls;
            self.calls += 1;
            self.delivered = true;
            sink.tool_call_start(position, &name);
            self.open_calls.insert(index, OpenCall { position, name, arguments: String::new() });
        }
    }

    /// Passes a complete item of a document to the sink.
    fn deliver(&mut self, item: &Item, sink: &dyn LlmSink) {
        match item {
            Item::Reasoning { summary, .. } => {
                summary.iter().for_each(|text| sink.thinking(text, true));
            }
            Item::Message { text, refusal, .. } => {
                [text, refusal].into_iter().filter(|text| !text.is_empty()).for_each(|text| {
                    sink.text_delta(text);
                });
            }
            Item::Call { name, .. } => {
                sink.tool_call_start(self.calls, name);
                self.calls += 1;
            }
            Item::Opaque(_) => return,
        }
        self.delivered = true;
    }

    fn complete(&mut self, response: Response<'_>) {
        self.note_model(Some(&response));
        let reason = response.incomplete_details.and_then(|details| details.reason);
        self.finish = reason.or(response.status).map(Into::into);
        self.usage = response.usage.unwrap_or(self.usage);
        self.done = true;
    }
}
