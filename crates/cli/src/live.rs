//! Chunks of a stream, as people watch them.

use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use helix_agents::clock::Timestamp;
use helix_agents::error::ErrorRecord;
use helix_agents::id::{CallId, SessionId};
use helix_agents::stream::{Chunk, ChunkKind, StoredChunk};

use tokio::time::{Interval, MissedTickBehavior, interval};

use self::activity::Activity;
use self::margin::margin;
use crate::screen::{Screen, Style};
use crate::terminal;
use crate::text::{duration, shortened};

mod activity;
mod margin;
mod plan;

/// How often the status line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// How long text may pause in the middle of a line before the status line is shown below it.
const PAUSE: Duration = Duration::from_millis(400);

/// How much of a tool's arguments or result is shown.
const MOST: usize = 100;

/// How much of a name that others chose is shown.
const MOST_NAME: usize = 40;

/// When to [`tick`](LiveView::tick).
pub(crate) fn ticks() -> Interval {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// Shows chunks one after another, and on a terminal a status line while there are none.
#[derive(Debug)]
pub(crate) struct LiveView<'a> {
    screen: &'a Screen,
    outcomes: bool,
    boundaries: bool,
    /// Whether the last words of the model at the top were shown: nothing has been done since.
    said: bool,
    /// Since when calls and children are under way.
    started: HashMap<(SessionId, CallId), Timestamp>,
    /// The tools of calls that were shown and have no result yet.
    open: HashMap<(SessionId, CallId), String>,
    /// What stands before each line of what is being shown.
    margin: String,
    /// Whose text has left its line open.
    speaker: Option<SessionId>,
    activity: Activity,
    last: Instant,
}

impl<'a> LiveView<'a> {
    /// A view that has shown nothing yet.
    pub(crate) fn new(screen: &'a Screen) -> Self {
        let now = Instant::now();
        Self {
            screen,
            outcomes: false,
            boundaries: true,
            said: false,
            started: HashMap::new(),
            open: HashMap::new(),
            margin: String::new(),
            speaker: None,
            activity: Activity::new(now),
            last: now,
        }
    }

    /// Shows what came of a run as well, for those who are told nowhere else.
    pub(crate) fn with_outcomes(mut self) -> Self {
        self.outcomes = true;
        self
    }

    /// Shows nothing of beginnings, ends and steps, which go without saying in a conversation.
    pub(crate) fn within_conversation(mut self) -> Self {
        self.boundaries = false;
        self
    }

    /// Whether the last that was shown are words of the model.
    pub(crate) fn has_said(&self) -> bool {
        self.said
    }

    /// Whether it has a status line, so that it wants to [`tick`](Self::tick).
    pub(crate) fn has_status(&self) -> bool {
        !self.screen.is_json() && terminal::has_status()
    }

    /// Draws the status line, unless text is arriving.
    pub(crate) fn tick(&self) {
        let now = Instant::now();
        let is_paused = now.duration_since(self.last) >= PAUSE;
        if self.has_status() && (is_paused || !terminal::is_line_open()) {
            terminal::show_status(&self.activity.line(now));
        }
    }

    /// Waits for something, and draws the status line meanwhile.
    pub(crate) async fn waiting<T>(&self, wanted: impl Future<Output = T>) -> T {
        let mut wanted = pin!(wanted);
        let mut ticks = ticks();
        loop {
            tokio::select! {
                biased;
                got = &mut wanted => return got,
                _ = ticks.tick(), if self.has_status() => self.tick(),
            }
        }
    }

    /// Takes in how many tokens the run has used so far.
    pub(crate) fn count(&mut self, input: u64, output: u64) {
        self.activity.count(input, output);
    }

    /// Takes in that the run was asked to stop.
    pub(crate) fn ask(&mut self, what: &'static str) {
        self.activity.ask(what);
    }

    /// Shows the next chunk.
    pub(crate) fn show(&mut self, stored: &StoredChunk) -> io::Result<()> {
        let chunk = &*stored.chunk;
        self.last = Instant::now();
        self.activity.take(chunk, self.last);
        self.margin = margin(chunk);
        match &chunk.kind {
            ChunkKind::TextDelta { .. } => self.said = self.margin.is_empty(),
            ChunkKind::ToolStart { .. }
            | ChunkKind::SubagentStart { .. }
            | ChunkKind::StepDiscarded { .. } => self.said = false,
            _ => {}
        }
        if !self.boundaries && is_boundary(&chunk.kind) {
            return Ok(());
        }
        self.show_kind(chunk)
    }

    fn show_kind(&mut self, chunk: &Chunk) -> io::Result<()> {
        match &chunk.kind {
            ChunkKind::TextDelta { delta } => self.speak(chunk, delta, None),
            ChunkKind::Thinking { content, complete: false } => {
                self.speak(chunk, content, Some(Style::Dim))
            }
            // What the model says is over, and a call can take long to write.
            ChunkKind::ToolArgStart { .. } => self.finish(),
            ChunkKind::ToolStart { call, tool, arguments } => {
                self.started.insert(whole(call, chunk), chunk.at);
                let tool = shortened(tool, MOST_NAME);
                self.open.insert(whole(call, chunk), tool.clone());
                self.line(format!("  → {tool} {}", shortened(arguments, MOST)))
            }
            ChunkKind::SubagentStart { call, subagent, child } => {
                self.started.insert(whole(call, chunk), chunk.at);
                let subagent = shortened(subagent, MOST_NAME);
                self.line(format!("  → {subagent} begins as {}", shortened(child.as_str(), MOST)))
            }
            ChunkKind::SubagentEnd { call, subagent, success, .. } => {
                let took = self.took(call, chunk);
                let ended = match success {
                    true => self.screen.styled(Style::Good, "✓"),
                    false => self.screen.styled(Style::Bad, "✗"),
                };
                let how = if *success { "is done" } else { "did not complete" };
                self.line(format!("  {ended} {}{took} {how}", shortened(subagent, MOST_NAME)))
            }
            ChunkKind::ToolApprovalRequest { call, tool, arguments, .. } => {
                let tool = shortened(tool, MOST_NAME);
                self.open.insert(whole(call, chunk), tool.clone());
                let waits = self.screen.styled(Style::Bold, "?");
                let arguments = shortened(arguments, MOST);
                self.line(format!("  {waits} {tool} waits for approval {arguments}"))
            }
            // The status line tells of it.
            ChunkKind::ToolProgress { .. } if self.has_status() => Ok(()),
            ChunkKind::ToolProgress { message, .. } => {
                self.dim(format!("    {}", shortened(message, MOST)))
            }
            ChunkKind::ToolEnd { call, tool, success: true, result } => {
                let result = result.as_deref().unwrap_or_default();
                let took = self.took(call, chunk);
                let done = self.screen.styled(Style::Good, "✓");
                let tool = shortened(tool, MOST_NAME);
                self.line(format!("  {done} {tool}{took} {}", shortened(result, MOST)))
            }
            ChunkKind::ToolError { call, tool, error } => {
                let took = self.took(call, chunk);
                let failed = self.screen.styled(Style::Bad, "✗");
                let tool = shortened(tool, MOST_NAME);
                self.line(format!("  {failed} {tool}{took} {}", shortened(&error.message, MOST)))
            }
            ChunkKind::RunResumed => self.dim(format!("run {} goes on", chunk.run)),
            ChunkKind::RunStarted => self.dim(format!("run {} began", chunk.run)),
            ChunkKind::RunEnded { status } => self.dim(format!("run {} {status}", chunk.run)),
            ChunkKind::RunInterrupted { .. } => self.dim(format!("run {} interrupted", chunk.run)),
            ChunkKind::RunSuspended { calls, deadline } => {
                let named: Vec<_> = calls.iter().map(|call| self.named(call, chunk)).collect();
                let until = deadline.map_or_else(String::new, |at| format!(" until {at}"));
                let named = if named.is_empty() { "children".to_owned() } else { named.join(", ") };
                self.dim(format!("run {} waits for {named}{until}", chunk.run))
            }
            ChunkKind::Checkpoint { version } => {
                self.dim(format!("step {} is done; checkpoint at {version}", chunk.step))
            }
            ChunkKind::StepDiscarded { .. } => {
                self.dim("what was shown of an unfinished step is void".to_owned())
            }
            ChunkKind::Custom { name, data } => match plan::told(name, data) {
                Some(Some(told)) => self.dim(shortened(&told, MOST)),
                Some(None) => Ok(()),
                None => {
                    self.dim(format!("{}: {}", shortened(name, MOST_NAME), shortened(data, MOST)))
                }
            },
            ChunkKind::Error { error } if self.outcomes => self.error(error),
            ChunkKind::Output { output } if self.outcomes => {
                let output = self.screen.foreign(output);
                self.line(output)
            }
            ChunkKind::StreamResync => {
                self.dim("older chunks are gone; the log has what happened".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Takes the status line away, and ends a line that text may have left open.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.speaker = None;
        terminal::hide_status();
        self.screen.end_line()
    }

    /// Shows a piece of text, which others may cut off in the middle of a line.
    fn speak(&mut self, chunk: &Chunk, text: &str, style: Option<Style>) -> io::Result<()> {
        if self.speaker.as_ref().is_some_and(|speaker| *speaker != chunk.session) {
            self.finish()?;
        }
        let mut is_open = self.speaker.is_some();
        let mut lines = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            if !is_open {
                lines.push_str(&self.margin);
            }
            lines.push_str(line);
            is_open = !line.ends_with('\n');
        }
        self.speaker = is_open.then(|| chunk.session.clone());
        match style {
            Some(style) => self.screen.text(&self.screen.styled(style, lines)),
            None => self.screen.text(&self.screen.foreign(&lines)),
        }
    }

    fn line(&mut self, line: impl Display) -> io::Result<()> {
        self.finish()?;
        self.screen.line(format_args!("{}{line}", self.margin))
    }

    fn dim(&mut self, line: String) -> io::Result<()> {
        let line = self.screen.styled(Style::Dim, line);
        self.line(line)
    }

    fn error(&mut self, error: &ErrorRecord) -> io::Result<()> {
        self.finish()?;
        self.screen.text(&self.margin)?;
        self.screen.error(error)
    }

    /// A call with its tool, if that was shown.
    fn named(&self, call: &CallId, chunk: &Chunk) -> String {
        let call_id = shortened(call.as_str(), MOST_NAME);
        let tool = self.open.get(&whole(call, chunk));
        tool.map_or_else(|| call_id.clone(), |tool| format!("{tool} ({call_id})"))
    }

    fn took(&mut self, call: &CallId, chunk: &Chunk) -> String {
        self.open.remove(&whole(call, chunk));
        let started = self.started.remove(&whole(call, chunk));
        started.map_or_else(String::new, |at| format!(" ({})", duration(chunk.at.since(at))))
    }
}

/// A call of the session that shows the chunk: another one may have a call of the same id.
fn whole(call: &CallId, chunk: &Chunk) -> (SessionId, CallId) {
    (chunk.session.clone(), call.clone())
}

fn is_boundary(kind: &ChunkKind) -> bool {
    kind.ends_run()
        || matches!(
            kind,
            ChunkKind::RunStarted | ChunkKind::RunResumed | ChunkKind::Checkpoint { .. }
        )
}

impl Drop for LiveView<'_> {
    fn drop(&mut self) {
        terminal::hide_status();
    }
}

/// What a session shows, for tests.
#[cfg(test)]
fn shown_by(session: &str, kind: ChunkKind) -> Chunk {
    Chunk {
        agent: "helper".into(),
        session: session.into(),
        run: "run".into(),
        step: 1,
        at: Timestamp::default(),
        kind,
    }
}
