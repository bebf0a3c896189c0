//! Staged events, encoded as they are staged, and how they are divided into appends.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, ErrorCode, Result};
use crate::event::{Event, encode_into};

/// How many appends of [`target`] bytes fit into the largest one that a store takes.
const PER_LIMIT: usize = 8;

/// Up to how many bytes events share an append, for a store that takes appends of up to `limit`
/// bytes: well below, so that an append never comes near the limit unless one event does.
pub(super) const fn target(limit: usize) -> usize {
    limit / PER_LIMIT
}

/// Events in the order of the log, and the body of the append that carries them.
///
/// Each event is encoded once, when it is pushed: its size is known before it enters the fold, and
/// the append costs nothing more.
#[derive(Debug, Default)]
pub(super) struct Batch {
    events: Vec<Event>,
    /// What [`encode`](crate::event::encode) writes, without the last bracket.
    body: Vec<u8>,
    /// Where the text of each event ends in `body`.
    ends: Vec<usize>,
}

impl Batch {
    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The size of the body.
    pub(super) fn bytes(&self) -> usize {
        self.body.len() + 1
    }

    /// Adds an event; returns its size.
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] if it cannot be written as JSON. Then nothing is added.
    pub(super) fn push(&mut self, event: &Event) -> Result<usize> {
        let before = self.body.len();
        if before == 0 {
            // Most appends are about this long.
            self.body.reserve(512);
        }
        self.body.push(if before == 0 { b'[' } else { b',' });
        if let Err(error) = encode_into(&mut self.body, event) {
            self.body.truncate(before);
            return Err(error);
        }
        self.ends.push(self.body.len());
        self.events.push(event.clone());
        Ok(self.body.len() - before - 1)
    }

    /// Removes the event that was pushed last.
    pub(super) fn pop(&mut self) {
        self.events.pop();
        self.ends.pop();
        self.body.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Adds the events of another batch.
    pub(super) fn append(&mut self, mut other: Self) {
        if self.events.is_empty() {
            *self = other;
            return;
        }
        // The other's bracket becomes the comma.
        let before = self.body.len();
        if let Some(bracket) = other.body.first_mut() {
            *bracket = b',';
        }
        self.body.append(&mut other.body);
        self.ends.extend(other.ends.iter().map(|end| end + before));
        self.events.append(&mut other.events);
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// The body of an append of all events.
    pub(super) fn take_body(&mut self) -> Bytes {
        let mut body = std::mem::take(&mut self.body);
        body.push(b']');
        body.into()
    }

    /// The same events in several batches, each of at most [`target`] bytes where that is possible.
    ///
    /// A batch ends before a fact, never between a fact and what follows from it: whoever continues
    /// a log that ends with one of the batches finds the next fact missing, and nothing else.
    /// Only what is larger than `limit` together is divided further.
    pub(super) fn divide(self, limit: usize) -> VecDeque<Self> {
        let mut parts = VecDeque::new();
        let mut part: Option<Range<usize>> = None;
        for unit in self.units(limit) {
            part = Some(match part {
                Some(part) if self.size(&(part.start..unit.end)) <= target(limit) => {
                    part.start..unit.end
                }
                Some(part) => {
                    parts.push_back(self.slice(part));
                    unit
                }
                None => unit,
            });
        }
        parts.extend(part.map(|part| self.slice(part)));
        parts
    }

    /// What is not divided.
    fn units(&self, limit: usize) -> Vec<Range<usize>> {
        let mut units: Vec<Range<usize>> = Vec::new();
        for (index, event) in self.events.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|before| self.events.get(before));
            match units.last_mut() {
                Some(unit)
                    if !before.is_none_or(|before| may_divide(before, event))
                        && self.size(&(unit.start..index + 1)) <= limit =>
                {
                    unit.end = index + 1;
                }
                _ => units.push(index..index + 1),
            }
        }
        units
    }

    /// The size of the body that carries these events.
    fn size(&self, events: &Range<usize>) -> usize {
        self.text(events).len() + 2
    }

    /// The events as they stand in the body, without the brackets or commas around them.
    fn text(&self, events: &Range<usize>) -> &[u8] {
        let end = |index: usize| self.ends.get(index).copied().unwrap_or(0);
        let start = events.start.checked_sub(1).map_or(0, end) + 1;
        let end = events.end.checked_sub(1).map_or(0, end);
        self.body.get(start..end).unwrap_or_default()
    }

    fn slice(&self, range: Range<usize>) -> Self {
        let text = self.text(&range);
        let mut body = Vec::with_capacity(text.len() + 2);
        body.push(b'[');
        body.extend_from_slice(text);
        let start = range.start.checked_sub(1).and_then(|before| self.ends.get(before));
        let start = start.copied().unwrap_or(0);
        let ends = self.ends.get(range.clone()).unwrap_or_default();
        Self {
            events: self.events.get(range).unwrap_or_default().to_vec(),
            body,
            ends: ends.iter().map(|end| end - start).collect(),
        }
    }
}

/// Whether an append may end with `before`, and the next one start with `event`.
fn may_divide(before: &Event, event: &Event) -> bool {
    let fact = match event {
        // An answer without a run is a decision on what came before it.
        Event::ToolFinished(finish) => finish.attempts > 0 || finish.child.is_some(),
        Event::ModelReplied(_)
        | Event::ToolStarted { .. }
        | Event::PartRepeated { .. }
        | Event::ChildStarted(_)
        | Event::ChildWaiting { .. }
        | Event::UsageRecorded { .. } => true,
        _ => false,
    };
    // What a call used stands before its result, what hooks changed before the reply.
    let announces = matches!(before, Event::UsageRecorded { call: Some(_), .. })
        || matches!((before, event), (Event::StateChanged { .. }, Event::ModelReplied(_)));
    fact && !announces
}

/// The error of an event that no append carries.
pub(super) fn too_large(event: &Event, bytes: usize, limit: usize) -> Error {
    Error::new(ErrorCode::TooLarge, "one event is larger than the store's limit for an append")
        .with_context("event", event.name())
        .with_context("bytes", bytes)
        .with_context("limit", limit)
}

#[cfg(test)]
mod tests;
