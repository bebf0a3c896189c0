//! The status line: the current activity of a run.

use std::time::{Duration, Instant};

use helix_agents_core::clock::short_duration;
use helix_agents_core::id::{CallId, SessionId};
use helix_agents_core::stream::{Chunk, ChunkKind};

use helix_agents_tools::text::shortened;

/// The frames of the spinner.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The duration of a frame.
const FRAME: Duration = Duration::from_millis(100);

/// The maximum number of tools that are named. The others are counted.
const NAMED: usize = 3;

/// The maximum length of a tool's name or progress message.
const MAX_CHARS: usize = 40;

/// The number of blocks in a progress bar.
const BLOCKS: usize = 10;

/// The current activity of a run and its sub-agents, as seen in their chunks.
#[derive(Debug)]
pub(super) struct Activity {
    started: Instant,
    /// The time of the last chunk.
    silent_since: Instant,
    /// The tool of the call that the model is writing.
    writing: Option<String>,
    tools: Vec<RunningTool>,
    input: u64,
    output: u64,
    /// The pending request to stop the run.
    request: Option<&'static str>,
}

#[derive(Debug)]
struct RunningTool {
    session: SessionId,
    call: CallId,
    name: String,
    started: Instant,
    message: String,
    fraction: Option<f64>,
}

impl Activity {
    /// Creates the activity of a run without chunks.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            started: now,
            silent_since: now,
            writing: None,
            tools: Vec::new(),
            input: 0,
            output: 0,
            request: None,
        }
    }

    /// Updates the activity with the next chunk.
    pub(super) fn take(&mut self, chunk: &Chunk, now: Instant) {
        match &chunk.kind {
            ChunkKind::ToolArgDelta { .. } => return,
            ChunkKind::ToolArgStart { tool, .. } => self.writing = Some(shortened(tool, MAX_CHARS)),
            ChunkKind::ToolProgress { call, message, fraction } => {
                if let Some(tool) = self.tools.iter_mut().find(|tool| tool.is(chunk, call)) {
                    tool.message = shortened(message, MAX_CHARS);
                    tool.fraction = *fraction;
                }
            }
            ChunkKind::ToolStart { call, tool: name, .. }
            | ChunkKind::SubagentStart { call, subagent: name, .. } => {
                self.writing = None;
                self.tools.retain(|tool| !tool.is(chunk, call));
                self.tools.push(RunningTool {
                    session: chunk.session.clone(),
                    call: call.clone(),
                    name: shortened(name, MAX_CHARS),
                    started: now,
                    message: String::new(),
                    fraction: None,
                });
            }
            ChunkKind::ToolEnd { call, .. } | ChunkKind::SubagentEnd { call, .. } => {
                self.tools.retain(|tool| !tool.is(chunk, call));
            }
            ChunkKind::StepDiscarded { .. } | ChunkKind::RunSuspended { .. } => {
                self.writing = None;
                self.tools.retain(|tool| tool.session != chunk.session);
            }
            _ => self.writing = None,
        }
        self.silent_since = now;
    }

    /// Sets the number of tokens used so far.
    pub(super) fn count(&mut self, input: u64, output: u64) {
        (self.input, self.output) = (input, output);
    }

    /// Sets the pending request to stop the run.
    pub(super) fn set_request(&mut self, request: &'static str) {
        self.request = Some(request);
    }

    /// Formats the status line. The most important parts come first, because the end may be cut off.
    pub(super) fn line(&self, now: Instant) -> String {
        let whole = now.duration_since(self.started);
        let mut parts: Vec<_> = self.request.map(str::to_owned).into_iter().collect();
        parts.extend(self.tools.iter().take(NAMED).map(|tool| tool.describe(now)));
        if self.tools.len() > NAMED {
            parts.push(format!("{} more", self.tools.len() - NAMED));
        }
        if self.tools.is_empty() {
            let silent = short_duration(tenths(now.duration_since(self.silent_since)));
            parts.push(match &self.writing {
                Some(tool) => format!("the model is writing a {tool} call {silent}"),
                None => format!("waiting for the model {silent}"),
            });
        }
        if self.input + self.output > 0 {
            parts.push(format!("{} in, {} out", short(self.input), short(self.output)));
        }
        parts.push(format!("{}:{:02}", whole.as_secs() / 60, whole.as_secs() % 60));
        let frame = whole.as_millis() / FRAME.as_millis() % FRAMES.len() as u128;
        let frame = FRAMES.get(frame as usize).copied().unwrap_or(' ');
        format!("{frame} {}", parts.join(" · "))
    }
}

impl RunningTool {
    /// Returns `true` if this is the call with this id in the chunk's session.
    fn is(&self, chunk: &Chunk, call: &CallId) -> bool {
        self.session == chunk.session && self.call == *call
    }

    fn describe(&self, now: Instant) -> String {
        let mut text = self.name.clone();
        if let Some(fraction) = self.fraction.filter(|fraction| fraction.is_finite()) {
            let fraction = fraction.clamp(0.0, 1.0);
            let full = (fraction * BLOCKS as f64) as usize;
            let bar = "▰".repeat(full) + &"▱".repeat(BLOCKS.saturating_sub(full));
            text.push_str(&format!(" {bar} {}%", (fraction * 100.0) as u32));
        }
        if !self.message.is_empty() {
            text.push_str(&format!(" {}", self.message));
        }
        text.push_str(&format!(" {}", short_duration(tenths(now.duration_since(self.started)))));
        text
    }
}

/// Rounds down to tenths of a second, the interval at which the line is drawn.
fn tenths(duration: Duration) -> Duration {
    Duration::from_millis(duration.as_millis() as u64 / 100 * 100)
}

/// Formats a number as `340`, `1.2k`, `12k` or `3.4M`.
fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..10_000 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        10_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests;
