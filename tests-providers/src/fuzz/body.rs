//! The body of a reply, divided into the units that carry its JSON.

use crate::case::Reply;
use crate::frames;

/// The form in which a body contains its units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One JSON document.
    Document,
    /// Server-sent events.
    Events,
    /// Binary frames.
    Frames,
}

/// A document, an event or a frame.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// The text before the data of an event, or the headers of a frame.
    pub(crate) before: Vec<u8>,
    /// The data, which usually is JSON.
    pub(crate) data: Vec<u8>,
    /// The text after the data of an event.
    pub(crate) after: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) framing: Framing,
    pub(crate) units: Vec<Unit>,
}

impl Framing {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Document => "application/json",
            Self::Events => "text/event-stream",
            Self::Frames => "application/vnd.amazon.eventstream",
        }
    }
}

impl Body {
    /// Divides a recorded body.
    pub(crate) fn of(reply: &Reply) -> Self {
        match reply {
            Reply::Document(value) => {
                let unit = Unit::plain(value.to_string().into_bytes());
                Self { framing: Framing::Document, units: vec![unit] }
            }
            Reply::Text(text) => {
                let events = text.split_inclusive("\n\n");
                Self { framing: Framing::Events, units: events.map(Unit::event).collect() }
            }
            Reply::Binary(bytes) => {
                let units = frames::divide(bytes).into_iter();
                let units = units.map(|(before, data)| Unit { before, data, after: Vec::new() });
                Self { framing: Framing::Frames, units: units.collect() }
            }
        }
    }

    /// Puts the units together.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for unit in &self.units {
            match self.framing {
                Framing::Frames => {
                    out.extend_from_slice(&frames::encode(&unit.before, &unit.data));
                }
                Framing::Document | Framing::Events => {
                    out.extend_from_slice(&unit.before);
                    out.extend_from_slice(&unit.data);
                    out.extend_from_slice(&unit.after);
                }
            }
        }
        out
    }
}

impl Unit {
    pub(crate) fn plain(data: Vec<u8>) -> Self {
        Self { before: Vec::new(), data, after: Vec::new() }
    }

    /// Divides the text of an event at its first line of data.
    pub(crate) fn event(text: &str) -> Self {
        let start = match text.strip_prefix("data:") {
            Some(_) => Some(5),
            None => text.find("\ndata:").map(|at| at + 6),
        };
        let Some(start) = start else { return Self::plain(text.as_bytes().to_vec()) };
        let (before, rest) = text.split_at(start);
        let end = rest.find('\n').unwrap_or(rest.len());
        let (data, after) = rest.split_at(end);
        let data = data.as_bytes().to_vec();
        Self { before: before.as_bytes().to_vec(), data, after: after.as_bytes().to_vec() }
    }

    pub(crate) fn len(&self) -> usize {
        self.before.len() + self.data.len() + self.after.len()
    }
}
