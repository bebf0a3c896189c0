//! Chunks of a stream, as people watch them.

use std::collections::HashMap;
use std::io;

use helix_agents::clock::Timestamp;
use helix_agents::error::ErrorRecord;
use helix_agents::id::CallId;
use helix_agents::stream::{Chunk, ChunkKind, StoredChunk};

use crate::screen::{Screen, Style};
use crate::text::{duration, shortened};

/// How much of a tool's arguments or result is shown.
const MOST: usize = 100;

/// Shows chunks one after another.
#[derive(Debug)]
pub(crate) struct LiveView<'a> {
    screen: &'a Screen,
    outcomes: bool,
    in_text: bool,
    started: HashMap<CallId, Timestamp>,
}

impl<'a> LiveView<'a> {
    /// A view that has shown nothing yet.
    pub(crate) fn new(screen: &'a Screen) -> Self {
        Self { screen, outcomes: false, in_text: false, started: HashMap::new() }
    }

    /// Shows what came of a run as well, for those who are told nowhere else.
    pub(crate) fn with_outcomes(mut self) -> Self {
        self.outcomes = true;
        self
    }

    /// Shows the next chunk.
    pub(crate) fn show(&mut self, stored: &StoredChunk) -> io::Result<()> {
        let chunk = &*stored.chunk;
        match &chunk.kind {
            ChunkKind::TextDelta { delta } => self.text(delta),
            ChunkKind::Thinking { content, complete: false } => {
                self.text(&self.screen.styled(Style::Dim, content))
            }
            ChunkKind::ToolStart { call, tool, arguments } => {
                self.started.insert(call.clone(), chunk.at);
                self.line(format!("  → {tool} {}", shortened(arguments, MOST)))
            }
            ChunkKind::ToolProgress { message, .. } => self.dim(format!("    {message}")),
            ChunkKind::ToolEnd { call, tool, success: true, result } => {
                let result = result.as_deref().unwrap_or_default();
                let took = self.took(call, chunk);
                let done = self.screen.styled(Style::Good, "✓");
                self.line(format!("  {done} {tool}{took} {}", shortened(result, MOST)))
            }
            ChunkKind::ToolError { call, tool, error } => {
                let took = self.took(call, chunk);
                let failed = self.screen.styled(Style::Bad, "✗");
                self.line(format!("  {failed} {tool}{took} {}", shortened(&error.message, MOST)))
            }
            ChunkKind::RunResumed => self.dim(format!("run {} goes on", chunk.run)),
            ChunkKind::RunStarted => self.dim(format!("run {} began", chunk.run)),
            ChunkKind::RunEnded { status } => self.dim(format!("run {} {status}", chunk.run)),
            ChunkKind::RunInterrupted { .. } => self.dim(format!("run {} interrupted", chunk.run)),
            ChunkKind::Checkpoint { version } => {
                self.dim(format!("step {} is done; checkpoint at {version}", chunk.step))
            }
            ChunkKind::StepDiscarded { .. } => {
                self.dim("what was under way when the process died begins anew".to_owned())
            }
            ChunkKind::Custom { name, data } => {
                self.dim(format!("{name}: {}", shortened(data, MOST)))
            }
            ChunkKind::Error { error } if self.outcomes => self.error(error),
            ChunkKind::Output { output } if self.outcomes => self.line(output.clone()),
            ChunkKind::StreamResync => {
                self.dim("older chunks are gone; the log has what happened".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Ends a line that text may have left open.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_text) {
            self.screen.line("")?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.in_text = !text.ends_with('\n');
        self.screen.text(text)
    }

    fn line(&mut self, line: String) -> io::Result<()> {
        self.finish()?;
        self.screen.line(line)
    }

    fn dim(&mut self, line: String) -> io::Result<()> {
        let line = self.screen.styled(Style::Dim, line);
        self.line(line)
    }

    fn error(&mut self, error: &ErrorRecord) -> io::Result<()> {
        let line = self.screen.styled(Style::Bad, error);
        self.line(line)
    }

    fn took(&mut self, call: &CallId, chunk: &Chunk) -> String {
        let started = self.started.remove(call);
        started.map_or_else(String::new, |at| format!(" ({})", duration(chunk.at.since(at))))
    }
}
