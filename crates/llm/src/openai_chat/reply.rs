//! A reply, assembled from chunks.

use std::sync::Arc;

use helix_agents_core::llm::{LlmResponse, LlmSink, ReplyBuilder};
use helix_agents_core::usage::Usage;

use super::calls::{Calls, TooManyParts};
use super::details::Details;
use super::outcome::{failure, stop_reason};
use super::profile::ServerProfile;
use super::wire::{Choice, Chunk, Delta, Text};
use crate::attempt::{Progress, Reading, ReplyReader};
use crate::failure::Failure;
use crate::response_id;

/// The reply so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    text: String,
    thinking: String,
    details: Details,
    refused: bool,
    calls: Calls,
    finish: Option<String>,
    usage: Usage,
    model: Option<Arc<str>>,
    id: Option<String>,
    /// The number of pieces that the sink received.
    pieces: usize,
    /// The number of pieces before the last finish reason.
    finished_pieces: usize,
    /// Whether the end event of the stream arrived.
    done: bool,
    /// Whether the end event is enough, because the server sends no finish reasons.
    may_lack_finish: bool,
}

impl ReplyReader for Reply {
    fn progress(&self) -> Progress {
        match self.finish {
            _ if self.done => Progress::Done,
            Some(_) => Progress::Finished,
            None => Progress::Open,
        }
    }

    fn is_whole(&self) -> bool {
        let is_cut = self.finish.as_deref() == Some("length");
        self.pieces == self.finished_pieces && (is_cut || self.calls.are_complete())
    }

    fn is_delivered(&self) -> bool {
        self.pieces > 0
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn event(
        &mut self,
        data: &[u8],
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            if self.finish.is_none() && !self.may_lack_finish {
                return Err(reading.subject.cut(None));
            }
            self.done = true;
        }
        // Data after the end event and empty data are ignored.
        if self.done || data.is_empty() {
            return Ok(());
        }
        self.chunk(data, false, reading, sink)
    }

    fn document(
        &mut self,
        body: &[u8],
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        self.chunk(body.trim_ascii(), true, reading, sink)?;
        if self.finish.is_none() && self.is_empty() {
            return Err(reading.subject.protocol("sent a document that contains no reply"));
        }
        self.done = true;
        Ok(())
    }

    fn end(self, reading: &Reading<'_>, sink: &dyn LlmSink) -> Result<LlmResponse, Failure> {
        if let Some(failure) = self.finish.as_deref().and_then(|raw| failure(raw, reading)) {
            return Err(failure);
        }
        let truncated = self.finish.as_deref() == Some("length");
        let has_calls = !self.calls.is_empty();
        let stop_reason = stop_reason(self.finish.as_deref(), has_calls, self.refused);
        let mut parts = ReplyBuilder::after_messages(reading.messages);
        let has_data = !self.details.is_empty();
        if !has_data {
            parts.thinking(&self.thinking, None);
        } else {
            self.details.add_to(&self.thinking, &mut parts);
        }
        parts.text(&self.text, None);
        if !self.calls.add_to(truncated, &mut parts) && !truncated {
            return Err(reading.subject.protocol("sent a call without a name"));
        }
        parts.calls().iter().for_each(|call| sink.tool_call(call));
        let layout =
            has_data.then(|| parts.layout(Arc::clone(reading.data_owner), reading.subject.model));
        let result = parts.into_result(stop_reason, reading.structured);
        let mut response = LlmResponse::new(result, self.usage);
        response.layout = layout.flatten();
        response.model = self.model;
        response.response_id = self.id;
        response.raw_stop_reason = self.finish;
        Ok(response)
    }
}

impl Reply {
    /// Creates the reply of a server with this profile.
    pub(super) fn new(profile: &ServerProfile) -> Self {
        Self { may_lack_finish: !profile.finish_reasons, ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thinking.is_empty() && self.calls.is_empty()
    }

    fn chunk(
        &mut self,
        json: &[u8],
        whole: bool,
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let garbage = || reading.subject.protocol("sent something that is not a chunk of a reply");
        // One check of the whole text is faster than a check of each string.
        let json = std::str::from_utf8(json).map_err(|_| garbage())?;
        if !json.starts_with('{') {
            return Err(garbage());
        }
        let chunk: Chunk<'_> = serde_json::from_str(json).map_err(|_| garbage())?;
        if let Some(error) = chunk.error {
            return Err(reading.subject.reported(error.get(), &reading.redactor));
        }
        if text(chunk.object.as_ref()) == "error" {
            return Err(reading.subject.reported(json, &reading.redactor));
        }
        // Counts in several chunks are running totals.
        if let Some(usage) = chunk.usage {
            self.usage = (*usage).into();
        }
        if self.id.is_none() {
            self.id = response_id::recordable(text(chunk.id.as_ref()));
        }
        if self.model.is_none() {
            let model = text(chunk.model.as_ref());
            self.model = Some(model).filter(|name| !name.is_empty()).map(Arc::from);
        }
        // Other choices are alternatives to the first.
        let choices = chunk.choices.into_iter().flatten();
        for choice in choices.filter(|choice| choice.index.unwrap_or(0) == 0) {
            self.choice(&choice, whole, sink)
                .map_err(|_| reading.subject.protocol("sent more parts than a reply can have"))?;
        }
        Ok(())
    }

    fn choice(
        &mut self,
        choice: &Choice<'_>,
        whole: bool,
        sink: &dyn LlmSink,
    ) -> Result<(), TooManyParts> {
        if let Some(delta) = &choice.delta {
            self.delta(delta, whole, sink)?;
        }
        let finish = text(choice.finish_reason.as_ref());
        if !finish.is_empty() {
            self.finished_pieces = self.pieces;
            // Some servers end every reply with `stop`, whatever they reported before.
            if self.finish.is_none() || finish != "stop" {
                self.finish = Some(finish.to_owned());
            }
        }
        Ok(())
    }

    fn delta(
        &mut self,
        delta: &Delta<'_>,
        whole: bool,
        sink: &dyn LlmSink,
    ) -> Result<(), TooManyParts> {
        // Servers that send both fields send the same text twice.
        let mut thinking = text(delta.reasoning_content.as_ref());
        if thinking.is_empty() {
            thinking = text(delta.reasoning.as_ref());
        }
        if !thinking.is_empty() {
            self.pieces += 1;
            self.thinking.push_str(thinking);
            sink.thinking(thinking, whole);
        }
        if let Some(details) = delta.reasoning_details
            && !self.details.add(details)
        {
            return Err(TooManyParts);
        }
        let refusal = text(delta.refusal.as_ref());
        self.refused |= !refusal.is_empty();
        for piece in [text(delta.content.as_ref()), refusal] {
            if !piece.is_empty() {
                self.pieces += 1;
                self.text.push_str(piece);
                sink.text_delta(piece);
            }
        }
        for call in delta.tool_calls.iter().flatten() {
            self.pieces += 1;
            if whole {
                self.calls.whole(call, sink)?;
            } else {
                self.calls.piece(call, sink)?;
            }
        }
        if let Some(function) = &delta.function_call {
            self.pieces += 1;
            self.calls.function_call(function, sink)?;
        }
        Ok(())
    }
}

fn text<'a>(text: Option<&'a Text<'_>>) -> &'a str {
    text.map_or("", |text| &text.0)
}
