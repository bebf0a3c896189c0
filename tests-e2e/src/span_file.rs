//! The spans that workers report, in a file.

use std::io::Write as _;
use std::path::PathBuf;

use helix_agents::event::RecordedEvent;
use helix_agents::observer::LogObserver;
use helix_agents::session::Session;
use helix_agents::telemetry::{Span, SpanOptions, spans};

/// An observer that appends the spans of each report to a file, with one line per span. A killed worker loses no line that it
/// has written.
#[derive(Debug)]
pub struct SpanFile(PathBuf);

impl SpanFile {
    /// Creates the observer.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    fn append(&self, session: &Session, events: &[RecordedEvent]) {
        let lines: String =
            spans(session, events, &SpanOptions::default()).iter().map(line).collect();
        if lines.is_empty() {
            return;
        }
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.0);
        let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
        assert!(written.is_ok(), "the file of spans cannot be written: {written:?}");
    }
}

impl LogObserver for SpanFile {
    fn recorded(&self, session: &Session, events: &[RecordedEvent]) {
        self.append(session, events);
    }

    fn recovered(&self, session: &Session, events: &[RecordedEvent]) {
        self.append(session, events);
    }
}

/// Returns the line of a span: its id, and all its data.
#[must_use]
pub fn line(span: &Span) -> String {
    format!("{} {span:?}\n", span.id)
}
