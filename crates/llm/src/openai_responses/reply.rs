//! A reply, assembled from the events of a stream or from a complete response.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::llm::{LlmResponse, LlmSink, ReplyBuilder};
use helix_agents_core::step::StopReason;
use helix_agents_core::usage::Usage;

use super::item::Item;
use super::open_item::OpenItem;
use super::wire::{Event, ItemStart, Response, WireUsage};
use crate::attempt::{Progress, Reading, ReplyReader};
use crate::failure::Failure;
use crate::response_id;

/// The maximum number of items of a reply.
const MAX_ITEMS: usize = 10_000;

/// The reply so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The complete items by index. Ids are unreliable: gateways change them between the events of one item.
    items: BTreeMap<u64, Item>,
    /// The items by index, from their start until they are complete.
    open: BTreeMap<u64, OpenItem>,
    /// The number of items that have started.
    started: u64,
    /// The index of the item that the last event was about.
    current: u64,
    calls: u32,
    /// The status, or the reason why the response is incomplete.
    finish: Option<String>,
    usage: WireUsage,
    model: Option<Arc<str>>,
    id: Option<String>,
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
                // Without an index, the items are in order.
                let next = u64::try_from(self.items.len()).unwrap_or(u64::MAX);
                self.finish_item(event.output_index.unwrap_or(next), item, sink);
            }
            "response.output_text.delta" | "response.refusal.delta" if !delta.is_empty() => {
                let open = self.open_item(event.output_index, OpenItem::Message);
                if let OpenItem::Message(text) = open {
                    text.push_str(delta);
                }
                self.delivered = true;
                sink.text_delta(delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta"
                if !delta.is_empty() =>
            {
                let open = self.open_item(event.output_index, OpenItem::Reasoning);
                if let OpenItem::Reasoning(text) = open {
                    text.push_str(delta);
                }
                self.delivered = true;
                sink.thinking(delta, false);
            }
            "response.function_call_arguments.delta" if !delta.is_empty() => {
                let index = self.index(event.output_index);
                if let Some(OpenItem::Call { position, arguments, .. }) = self.open.get_mut(&index)
                {
                    arguments.push_str(delta);
                    sink.tool_call_delta(*position, delta);
                }
            }
            "response.completed" | "response.incomplete" => {
                let response = event.response.ok_or_else(garbage)?;
                self.complete(response, sink).map_err(|_| garbage())?;
            }
            "response.failed" => {
                let error = event.response.and_then(|response| response.error);
                let error = error.map_or(json, |error| error.get());
                return Err(reading.subject.reported(error, &reading.redactor));
            }
            "error" => return Err(reading.subject.reported(json, &reading.redactor)),
            _ => {}
        }
        if self.items.len().max(self.open.len()) > MAX_ITEMS {
            return Err(reading.subject.protocol("sent more items than a reply can have"));
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
        self.complete(response, sink).map_err(|_| garbage())
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
        // Some servers do not send complete items, for example for a call that the token limit cut.
        for (index, open) in std::mem::take(&mut self.open) {
            self.items.entry(index).or_insert_with(|| open.into_item());
        }
        let is_refusal =
            |item: &Item| matches!(item, Item::Message { refusal, .. } if !refusal.is_empty());
        let refused = self.items.values().any(is_refusal);
        let is_nameless = |item: &Item| matches!(item, Item::Call { name, .. } if name.is_empty());
        if self.items.values().any(is_nameless) {
            return Err(reading.subject.protocol("sent a call without a name"));
        }
        let mut parts = ReplyBuilder::after_messages(reading.messages);
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
        let layout = parts.layout(Arc::clone(reading.data_owner), reading.subject.model);
        let result = parts.into_result(Some(stop_reason), reading.structured);
        let mut response = LlmResponse::new(result, self.usage.into());
        response.layout = layout;
        response.model = self.model;
        response.response_id = self.id;
        response.raw_stop_reason = self.finish;
        Ok(response)
    }
}

impl Reply {
    fn note_model(&mut self, response: Option<&Response<'_>>) {
        let model = response.and_then(|response| response.model.as_deref());
        self.model = model.map(Arc::from).or(self.model.take());
        let id = response.and_then(|response| response_id::recordable(response.id.as_deref()?));
        self.id = id.or(self.id.take());
    }

    /// Returns the index of the item that an event is about.
    fn index(&self, stated: Option<u64>) -> u64 {
        match stated {
            Some(index) => index,
            None if self.items.contains_key(&self.current) => self.current + 1,
            None => self.current,
        }
    }

    /// Returns the open item that an event is about. `new` creates it if the server did not announce
    /// it.
    fn open_item(&mut self, stated: Option<u64>, new: fn(String) -> OpenItem) -> &mut OpenItem {
        let index = self.index(stated);
        self.current = index;
        self.open.entry(index).or_insert_with(|| new(String::new()))
    }

    fn start(&mut self, stated: Option<u64>, item: &ItemStart<'_>, sink: &dyn LlmSink) {
        let index = stated.unwrap_or(self.started);
        self.started += 1;
        self.current = index;
        if item.kind == "function_call" {
            let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
            let (id, name) = (text(&item.call_id), text(&item.name));
            let position = self.start_call(&name, sink);
            let call = OpenItem::Call { position, id, name, arguments: String::new() };
            self.open.insert(index, call);
        }
    }

    /// Announces a call, and returns its position.
    fn start_call(&mut self, name: &str, sink: &dyn LlmSink) -> u32 {
        let position = self.calls;
        self.calls += 1;
        self.delivered = true;
        sink.tool_call_start(position, name);
        position
    }

    /// Adds a complete item, and passes on what the sink has not received of it.
    fn finish_item(&mut self, index: u64, item: Item, sink: &dyn LlmSink) {
        match (&item, self.open.remove(&index)) {
            (Item::Reasoning { summary, .. }, Some(open)) => {
                self.delivered |= open.deliver_rest(&summary.concat(), sink);
            }
            (Item::Reasoning { summary, .. }, None) => {
                self.delivered |= !summary.is_empty();
                summary.iter().for_each(|text| sink.thinking(text, true));
            }
            (Item::Message { text, refusal, .. }, open) => {
                let open = open.unwrap_or_else(|| OpenItem::Message(String::new()));
                self.delivered |= open.deliver_rest(&[&**text, refusal].concat(), sink);
            }
            (Item::Call { name, .. }, None) => {
                self.start_call(name, sink);
            }
            (Item::Call { .. }, Some(_)) | (Item::Opaque(_), _) => {}
        }
        self.items.insert(index, item);
    }

    /// Adds the last event of a stream, or a document. Its output has the items of which the stream
    /// lacked the end.
    fn complete(&mut self, response: Response<'_>, sink: &dyn LlmSink) -> serde_json::Result<()> {
        self.note_model(Some(&response));
        let output = response.output.unwrap_or_default();
        if output.len() > self.items.len() {
            for (index, item) in (0..).zip(output.into_iter().take(MAX_ITEMS)) {
                if !self.items.contains_key(&index) {
                    self.finish_item(index, Item::parse(item)?, sink);
                }
            }
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        self.finish = reason.or(response.status).map(Into::into);
        self.usage = response.usage.unwrap_or(self.usage);
        self.done = true;
        Ok(())
    }
}
