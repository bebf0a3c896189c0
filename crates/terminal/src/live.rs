//! Shows the chunks of a stream as text.

use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use helix_agents_core::clock::{Timestamp, short_duration};
use helix_agents_core::error::ErrorRecord;
use helix_agents_core::id::{CallId, SessionId};
use helix_agents_core::stream::{Chunk, ChunkKind, StoredChunk};
use helix_agents_planner::{PLAN_CHUNK, TOOL_LOGS_CHUNK, describe_plan};

use tokio::time::{Interval, MissedTickBehavior, interval};

use self::activity::Activity;
use self::margin::margin;
use crate::output;
use crate::screen::{Screen, Style};
use helix_agents_tools::text::shortened;

mod activity;
mod margin;

/// The interval at which the status line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// The pause of a text in the middle of a line after which the status line is shown below it.
const PAUSE: Duration = Duration::from_millis(400);

/// The maximum length of a tool's arguments or result.
const MAX_CHARS: usize = 100;

/// The maximum length of a name.
const MAX_NAME: usize = 40;

/// Returns an interval for [`tick`](LiveView::tick).
#[must_use]
pub fn ticks() -> Interval {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// A view that prints chunks, and on a terminal shows a status line while none arrive.
#[derive(Debug)]
pub struct LiveView<'a> {
    screen: &'a Screen,
    outcomes: bool,
    boundaries: bool,
    /// Whether the last thing shown is text of the root session's model.
    text_shown: bool,
    /// The start times of running calls and sub-agents.
    started: HashMap<(SessionId, CallId), Timestamp>,
    /// The tools of shown calls without a result.
    open: HashMap<(SessionId, CallId), String>,
    /// The prefix of each line of the current chunk.
    margin: String,
    /// The session whose text has not ended its line yet.
    speaker: Option<SessionId>,
    activity: Activity,
    last: Instant,
}

impl<'a> LiveView<'a> {
    /// Creates an empty view.
    #[must_use]
    pub fn new(screen: &'a Screen) -> Self {
        let now = Instant::now();
        Self {
            screen,
            outcomes: false,
            boundaries: true,
            text_shown: false,
            started: HashMap::new(),
            open: HashMap::new(),
            margin: String::new(),
            speaker: None,
            activity: Activity::new(now),
            last: now,
        }
    }

    /// Also shows the outputs and errors of runs.
    #[must_use]
    pub fn with_outcomes(mut self) -> Self {
        self.outcomes = true;
        self
    }

    /// Hides starts and ends of runs and steps, for conversations.
    #[must_use]
    pub fn within_conversation(mut self) -> Self {
        self.boundaries = false;
        self
    }

    /// Returns `true` if the last thing shown is text of the model.
    #[must_use]
    pub fn is_text_shown(&self) -> bool {
        self.text_shown
    }

    /// Returns `true` if there is a status line, so that [`tick`](Self::tick) has to be called.
    #[must_use]
    pub fn has_status(&self) -> bool {
        !self.screen.is_json() && output::has_status()
    }

    /// Draws the status line unless text is arriving.
    pub fn tick(&self) {
        let now = Instant::now();
        let is_paused = now.duration_since(self.last) >= PAUSE;
        if self.has_status() && (is_paused || !output::is_line_open()) {
            output::show_status(&self.activity.line(now));
        }
    }

    /// Waits for a future and draws the status line meanwhile.
    pub async fn waiting<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut ticks = ticks();
        loop {
            tokio::select! {
                biased;
                output = &mut future => return output,
                _ = ticks.tick(), if self.has_status() => self.tick(),
            }
        }
    }

    /// Sets the number of tokens that the run has used so far.
    pub fn count(&mut self, input: u64, output: u64) {
        self.activity.count(input, output);
    }

    /// Sets the pending request to stop the run, such as "interrupting".
    pub fn set_request(&mut self, request: &'static str) {
        self.activity.set_request(request);
    }

    /// Shows the next chunk.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn show(&mut self, stored: &StoredChunk) -> io::Result<()> {
        let chunk = &*stored.chunk;
        self.last = Instant::now();
        self.activity.take(chunk, self.last);
        self.margin = margin(chunk);
        match &chunk.kind {
            ChunkKind::TextDelta { .. } => self.text_shown = self.margin.is_empty(),
            ChunkKind::ToolStart { .. }
            | ChunkKind::SubagentStart { .. }
            | ChunkKind::StepDiscarded { .. } => self.text_shown = false,
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
            // Ends the text, because the model may take long to write a call.
            ChunkKind::ToolArgStart { .. } => self.finish(),
            ChunkKind::ToolStart { call, tool, arguments, .. } => {
                self.started.insert(call_key(call, chunk), chunk.at);
                let tool = shortened(tool, MAX_NAME);
                self.open.insert(call_key(call, chunk), tool.clone());
                self.line(format!("  → {tool} {}", shortened(arguments, MAX_CHARS)))
            }
            ChunkKind::SubagentStart { call, subagent, child, .. } => {
                self.started.insert(call_key(call, chunk), chunk.at);
                let subagent = shortened(subagent, MAX_NAME);
                self.line(format!(
                    "  → {subagent} starts as {}",
                    shortened(child.as_str(), MAX_CHARS)
                ))
            }
            ChunkKind::SubagentEnd { call, subagent, success, .. } => {
                let took = self.took(call, chunk);
                let ended = match success {
                    true => self.screen.styled(Style::Good, "✓"),
                    false => self.screen.styled(Style::Bad, "✗"),
                };
                let outcome = if *success { "completed" } else { "did not complete" };
                self.line(format!("  {ended} {}{took} {outcome}", shortened(subagent, MAX_NAME)))
            }
            ChunkKind::ToolApprovalRequest { call, tool, arguments, .. } => {
                let tool = shortened(tool, MAX_NAME);
                self.open.insert(call_key(call, chunk), tool.clone());
                let mark = self.screen.styled(Style::Bold, "?");
                let arguments = shortened(arguments, MAX_CHARS);
                self.line(format!("  {mark} {tool} waits for approval {arguments}"))
            }
            // The status line shows it.
            ChunkKind::ToolProgress { .. } if self.has_status() => Ok(()),
            ChunkKind::ToolProgress { message, .. } => {
                self.dim(format!("    {}", shortened(message, MAX_CHARS)))
            }
            ChunkKind::ToolEnd { call, tool, success: true, result } => {
                let result = result.as_deref().unwrap_or_default();
                let took = self.took(call, chunk);
                let done = self.screen.styled(Style::Good, "✓");
                let tool = shortened(tool, MAX_NAME);
                self.line(format!("  {done} {tool}{took} {}", shortened(result, MAX_CHARS)))
            }
            ChunkKind::ToolError { call, tool, error } => {
                let took = self.took(call, chunk);
                let failed = self.screen.styled(Style::Bad, "✗");
                let tool = shortened(tool, MAX_NAME);
                self.line(format!(
                    "  {failed} {tool}{took} {}",
                    shortened(&error.message, MAX_CHARS)
                ))
            }
            ChunkKind::RunResumed => self.dim(format!("run {} resumed", chunk.run)),
            ChunkKind::RunStarted { .. } => self.dim(format!("run {} started", chunk.run)),
            ChunkKind::RunEnded { status, .. } => self.dim(format!("run {} {status}", chunk.run)),
            ChunkKind::RunInterrupted { .. } => self.dim(format!("run {} interrupted", chunk.run)),
            ChunkKind::RunSuspended { calls, deadline } => {
                let named: Vec<_> = calls.iter().map(|call| self.named(call, chunk)).collect();
                let until = deadline.map_or_else(String::new, |at| format!(" until {at}"));
                let named =
                    if named.is_empty() { "sub-agents".to_owned() } else { named.join(", ") };
                self.dim(format!("run {} waits for {named}{until}", chunk.run))
            }
            ChunkKind::Checkpoint { version } => {
                self.dim(format!("step {} completed; checkpoint at {version}", chunk.step))
            }
            ChunkKind::StepDiscarded { .. } => {
                self.dim("the output of the unfinished step is discarded".to_owned())
            }
            // The results of the planner's calls, which have already been shown.
            ChunkKind::Custom { name, .. } if name == TOOL_LOGS_CHUNK => Ok(()),
            ChunkKind::Custom { name, data } => self.dim(custom(name, data)),
            ChunkKind::Error { error } if self.outcomes => self.error(error),
            ChunkKind::Output { output } if self.outcomes => {
                let output = self.screen.untrusted(output);
                self.line(output)
            }
            ChunkKind::StreamResync => {
                self.dim("older chunks were dropped; the log has all events".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Hides the status line and ends an open line of text.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn finish(&mut self) -> io::Result<()> {
        self.speaker = None;
        output::hide_status();
        self.screen.end_line()
    }

    /// Shows a piece of text. Text of another session ends the current line.
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
            None => self.screen.text(&self.screen.untrusted(&lines)),
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

    /// The id of a call, with its tool if it was shown.
    fn named(&self, call: &CallId, chunk: &Chunk) -> String {
        let call_id = shortened(call.as_str(), MAX_NAME);
        let tool = self.open.get(&call_key(call, chunk));
        tool.map_or_else(|| call_id.clone(), |tool| format!("{tool} ({call_id})"))
    }

    fn took(&mut self, call: &CallId, chunk: &Chunk) -> String {
        self.open.remove(&call_key(call, chunk));
        let started = self.started.remove(&call_key(call, chunk));
        started.map_or_else(String::new, |at| format!(" ({})", short_duration(chunk.at.since(at))))
    }
}

/// The key of a call: its session and id, because another session may have a call with the same id.
fn call_key(call: &CallId, chunk: &Chunk) -> (SessionId, CallId) {
    (chunk.session.clone(), call.clone())
}

/// Describes a custom chunk in one line.
fn custom(name: &str, data: &str) -> String {
    match describe_plan(data).filter(|_| name == PLAN_CHUNK) {
        Some(plan) => shortened(&plan, MAX_CHARS),
        None => format!("{}: {}", shortened(name, MAX_NAME), shortened(data, MAX_CHARS)),
    }
}

fn is_boundary(kind: &ChunkKind) -> bool {
    kind.ends_run()
        || matches!(
            kind,
            ChunkKind::RunStarted { .. } | ChunkKind::RunResumed | ChunkKind::Checkpoint { .. }
        )
}

impl Drop for LiveView<'_> {
    fn drop(&mut self) {
        output::hide_status();
    }
}

/// A chunk of a session, for tests.
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
