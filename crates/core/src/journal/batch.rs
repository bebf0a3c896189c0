//! Staged events, which are encoded when they are staged, and their division into appends.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, ErrorCode, Result};
use crate::event::{Event, encode_into};

/// The number of appends of [`target`] bytes that fit into the largest append of a store.
const PER_LIMIT: usize = 8;

/// The capacity of the encoding buffer that is kept between appends, in bytes.
const KEPT_BYTES: usize = 512;

/// Returns the size up to which events share an append, in bytes, for a store with a limit of
/// `limit` bytes per append. It is well below the limit, so that an append comes near the limit
/// only if a single event does.
pub(super) const fn target(limit: usize) -> usize {
    limit / PER_LIMIT
}

/// The origin of a staged event, which determines what a conflict does to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The event happened. After a conflict, it is applied again if it is still legal.
    Fact,
    /// The event follows from the fold. After a conflict, it is derived again from the new fold.
    Decision,
}

/// Events in the order of the log, and the body of the append that carries them.
///
/// Each event is encoded once, when it is pushed. Its size is then known before it enters the fold,
/// and the append needs no further encoding.
#[derive(Debug, Default)]
pub(super) struct Batch {
    events: Vec<Event>,
    /// The origin of each event, and the end of its text in `body`.
    origins_and_ends: Vec<(Origin, usize)>,
    /// The output of [`encode`](crate::event::encode), without the closing bracket.
    body: Vec<u8>,
}

impl Batch {
    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the size of the body, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.body.len() + 1
    }

    /// Adds an event and returns its size in bytes.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Internal`] if the event cannot be written as JSON. Nothing is added
    /// then.
    pub(super) fn push(&mut self, event: &Event, origin: Origin) -> Result<usize> {
        let before = self.body.len();
        if before == 0 {
            // Most appends are smaller.
            self.body.reserve(KEPT_BYTES);
        }
        self.body.push(if before == 0 { b'[' } else { b',' });
        if let Err(error) = encode_into(&mut self.body, event) {
            self.body.truncate(before);
            return Err(error);
        }
        self.events.push(event.clone());
        self.origins_and_ends.push((origin, self.body.len()));
        Ok(self.body.len() - before - 1)
    }

    /// Removes the event that was pushed last.
    pub(super) fn pop(&mut self) {
        self.events.pop();
        self.origins_and_ends.pop();
        self.body.truncate(self.end(self.events.len()));
    }

    /// Adds the events of another batch.
    pub(super) fn append(&mut self, mut other: Self) {
        if self.events.is_empty() {
            *self = other;
            return;
        }
        // The opening bracket of the other body becomes the comma.
        let before = self.body.len();
        if let Some(bracket) = other.body.first_mut() {
            *bracket = b',';
        }
        self.body.append(&mut other.body);
        self.events.append(&mut other.events);
        self.origins_and_ends
            .extend(other.origins_and_ends.iter().map(|(origin, end)| (*origin, end + before)));
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// Returns the facts among the events.
    pub(super) fn into_facts(self) -> Vec<Event> {
        let events = self.events.into_iter().zip(self.origins_and_ends);
        let fact = |(event, (origin, _))| (origin == Origin::Fact).then_some(event);
        events.filter_map(fact).collect()
    }

    /// Returns the body of an append that carries all events. The buffer is kept for the next append.
    pub(super) fn take_body(&mut self) -> Bytes {
        self.body.push(b']');
        // A copy of the exact size: the memory store keeps the body, so unused capacity would stay allocated.
        let body = Bytes::copy_from_slice(&self.body);
        self.clear_body();
        body
    }

    /// Returns the events and keeps the buffers for the next append.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        self.origins_and_ends.clear();
        self.clear_body();
        std::mem::take(&mut self.events)
    }

    fn clear_body(&mut self) {
        self.body.clear();
        // A waiting run does not keep the buffer of a large append.
        self.body.shrink_to(KEPT_BYTES);
    }

    /// Divides the events into several batches, each of at most [`target`] bytes where that is
    /// possible.
    ///
    /// A fact and the decisions that follow from it form a unit. A unit is divided only if it is
    /// larger than `limit`. A run that continues from a log ending with one of the batches is
    /// missing only later facts.
    pub(super) fn divide(self, limit: usize) -> VecDeque<Self> {
        let mut batches = VecDeque::new();
        let mut current: Option<Range<usize>> = None;
        for unit in self.units(limit) {
            current = Some(match current {
                Some(range) if self.size(&(range.start..unit.end)) <= target(limit) => {
                    range.start..unit.end
                }
                Some(range) => {
                    batches.push_back(self.slice(range));
                    unit
                }
                None => unit,
            });
        }
        batches.extend(current.map(|range| self.slice(range)));
        batches
    }

    /// Returns the ranges of events that stay together.
    fn units(&self, limit: usize) -> Vec<Range<usize>> {
        let mut units: Vec<Range<usize>> = Vec::new();
        for (index, (event, (origin, _))) in
            self.events.iter().zip(&self.origins_and_ends).enumerate()
        {
            let before = index.checked_sub(1).and_then(|before| self.events.get(before));
            match units.last_mut() {
                Some(unit)
                    if !before.is_none_or(|before| may_divide(before, event, *origin))
                        && self.size(&(unit.start..index + 1)) <= limit =>
                {
                    unit.end = index + 1;
                }
                _ => units.push(index..index + 1),
            }
        }
        units
    }

    /// Returns the size of a body that carries these events.
    fn size(&self, events: &Range<usize>) -> usize {
        self.text(events).len() + 2
    }

    /// Returns the end of the text of the first `count` events in the body.
    fn end(&self, count: usize) -> usize {
        let last = count.checked_sub(1).and_then(|last| self.origins_and_ends.get(last));
        last.map_or(0, |(_, end)| *end)
    }

    /// Returns the events' text in the body, without the surrounding brackets or commas.
    fn text(&self, events: &Range<usize>) -> &[u8] {
        self.body.get(self.end(events.start) + 1..self.end(events.end)).unwrap_or_default()
    }

    fn slice(&self, range: Range<usize>) -> Self {
        let text = self.text(&range);
        let mut body = Vec::with_capacity(text.len() + 2);
        body.push(b'[');
        body.extend_from_slice(text);
        let start = self.end(range.start);
        let origins_and_ends = self.origins_and_ends.get(range.clone()).unwrap_or_default();
        Self {
            events: self.events.get(range).unwrap_or_default().to_vec(),
            origins_and_ends: origins_and_ends
                .iter()
                .map(|(origin, end)| (*origin, end - start))
                .collect(),
            body,
        }
    }
}

/// Returns `true` if an append may end with `before` and the next one start with `event`.
fn may_divide(before: &Event, event: &Event, origin: Origin) -> bool {
    let starts_unit = matches!(
        event,
        Event::ToolFinished(_)
            | Event::ModelReplied(_)
            | Event::ToolStarted { .. }
            | Event::WorkItemRepeated { .. }
            | Event::ChildStarted(_)
            | Event::ChildWaiting { .. }
            | Event::UsageRecorded { .. }
    );
    // A call's usage precedes its result, and a hook's state change precedes the reply.
    let announces = matches!(before, Event::UsageRecorded { call: Some(_), .. })
        || matches!((before, event), (Event::StateChanged { .. }, Event::ModelReplied(_)));
    origin == Origin::Fact && starts_unit && !announces
}

/// Returns the error for an event that does not fit into any append.
pub(super) fn too_large(event: &Event, bytes: usize, limit: usize) -> Error {
    Error::new(ErrorCode::TooLarge, "one event is larger than the store's limit for an append")
        .with_context("event", event.name())
        .with_context("bytes", bytes)
        .with_context("limit", limit)
}

#[cfg(test)]
mod tests;
