//! The tool calls of a reply, assembled from pieces that servers label in different ways.

use helix_agents_core::llm::{LlmSink, ReplyBuilder};
use helix_agents_core::message::Arguments;
use helix_agents_core::step::ParsedToolCall;
use serde::de::IgnoredAny;

use super::json_scan::JsonScan;
use super::wire::{CallDelta, FunctionDelta};

/// The maximum number of calls in a reply.
const MAX_CALLS: usize = 1024;

/// The calls so far, in the order in which they started.
#[derive(Debug, Default)]
pub(super) struct Calls {
    list: Vec<Call>,
    /// Whether the calls arrived as `tool_calls`. In that case a `function_call` only repeats one
    /// of them.
    labelled: bool,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// The state of the search for the end of the arguments.
    scan: JsonScan,
}

/// The reply has more parts than allowed.
#[derive(Debug)]
pub(super) struct TooManyParts;

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns `true` if no call lacks a part of its arguments.
    pub(super) fn are_complete(&self) -> bool {
        let has_all = |call: &Call| call.arguments.is_empty() || is_json(&call.arguments);
        self.list.iter().all(has_all)
    }

    /// Adds a piece of a streamed call.
    pub(super) fn piece(
        &mut self,
        delta: &CallDelta<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), TooManyParts> {
        self.labelled = true;
        let empty = FunctionDelta::default();
        let function = delta.function.as_ref().unwrap_or(&empty);
        let id = delta.id.as_ref().map_or("", |text| &text.0);
        let place = self.place(delta.index, id, function.name());
        self.extend(place, delta.index, id, function, sink)
    }

    /// Adds a complete call.
    pub(super) fn whole(
        &mut self,
        delta: &CallDelta<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), TooManyParts> {
        self.labelled = true;
        let empty = FunctionDelta::default();
        let function = delta.function.as_ref().unwrap_or(&empty);
        let id = delta.id.as_ref().map_or("", |text| &text.0);
        self.extend(self.list.len(), None, id, function, sink)
    }

    /// Adds a piece of a call in the legacy format, which has one call per reply. If a server sends
    /// both formats, they describe the same call.
    pub(super) fn function_call(
        &mut self,
        function: &FunctionDelta<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), TooManyParts> {
        if self.labelled {
            return Ok(());
        }
        self.extend(0, None, "", function, sink)
    }

    /// Returns the index of the call that a piece belongs to, or the length of the list for a new
    /// call.
    fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let new = self.list.len();
        let find = |wanted: &dyn Fn(&Call) -> bool| self.list.iter().rposition(wanted);
        let Some(index) = index else {
            if !id.is_empty() {
                return find(&|call| call.id == id).unwrap_or(new);
            }
            // Without a label, a name starts a new call, unless the server repeats it in every
            // piece.
            let continues = self
                .list
                .last_mut()
                .is_some_and(|last| name.is_empty() || (last.name == name && !last.is_complete()));
            return if continues { new - 1 } else { new };
        };
        let Some(place) = find(&|call| call.index == Some(index)) else {
            return new;
        };
        // Some servers give every call the same index.
        let is_other = self.list.get_mut(place).is_some_and(|call| {
            !id.is_empty()
                && !call.id.is_empty()
                && call.id != id
                && !name.is_empty()
                && call.is_complete()
        });
        if is_other { new } else { place }
    }

    fn extend(
        &mut self,
        place: usize,
        index: Option<u64>,
        id: &str,
        function: &FunctionDelta<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), TooManyParts> {
        if place >= self.list.len() {
            if self.list.len() >= MAX_CALLS {
                return Err(TooManyParts);
            }
            self.list.push(Call { index, ..Call::default() });
        }
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        let Some(call) = self.list.get_mut(place) else {
            return Ok(());
        };
        // Ids and names that are repeated or changed in later pieces are ignored.
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let was_named = !call.name.is_empty();
        if !was_named {
            function.name().clone_into(&mut call.name);
        }
        let piece = function.arguments.as_ref().map_or("", |text| &text.0);
        call.arguments.push_str(piece);
        if call.name.is_empty() {
            return Ok(());
        }
        if !was_named {
            sink.tool_call_start(number, &call.name);
        }
        // Pieces before the name were held back.
        let news = if was_named { piece } else { &call.arguments };
        if !news.is_empty() {
            sink.tool_call_delta(number, news);
        }
        Ok(())
    }

    /// Adds the calls to the parts of the reply. `truncated` is `true` if the reply was cut off at the token limit.
    /// Returns `false` if a call has no name. Such a call is omitted.
    pub(super) fn add_to(self, truncated: bool, parts: &mut ReplyBuilder) -> bool {
        let mut are_named = true;
        let last = self.list.len().saturating_sub(1);
        for (index, call) in self.list.into_iter().enumerate() {
            if call.name.is_empty() {
                are_named = false;
                continue;
            }
            let arguments = if truncated && index == last && !is_object(&call.arguments) {
                Arguments::Malformed(call.arguments)
            } else {
                Arguments::parse(&call.arguments)
            };
            parts.call(ParsedToolCall::new(call.id, call.name, arguments), None);
        }
        are_named
    }
}

impl Call {
    /// Returns `true` if the arguments are complete. Servers that repeat the name in every piece
    /// cause this question for every piece.
    fn is_complete(&mut self) -> bool {
        self.scan.is_complete(&self.arguments)
    }
}

impl FunctionDelta<'_> {
    fn name(&self) -> &str {
        self.name.as_ref().map_or("", |text| &text.0)
    }
}

/// Returns `true` if the text is a complete JSON object, which a truncated one never is.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && is_json(text)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}
