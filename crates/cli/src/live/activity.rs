//! What a run is doing right now, in one line.

use std::time::{Duration, Instant};

use helix_agents::id::{CallId, SessionId};
use helix_agents::stream::{Chunk, ChunkKind};

use crate::text::{duration, shortened};

/// One of these after another is something that turns.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// How long each of them is shown.
const FRAME: Duration = Duration::from_millis(100);

/// How many tools are named; the others are counted.
const NAMED: usize = 3;

/// How much of a tool's name or of what it says is shown.
const MOST: usize = 40;

/// How many blocks a bar has.
const BLOCKS: usize = 10;

/// What a run and its children are doing, as far as their chunks tell.
#[derive(Debug)]
pub(super) struct Activity {
    began: Instant,
    /// Since when the model has been silent.
    silent: Instant,
    /// The call that the model is writing.
    writing: Option<String>,
    tools: Vec<RunningTool>,
    input: u64,
    output: u64,
    /// What was asked of the run and is yet to happen.
    asked: Option<&'static str>,
}

#[derive(Debug)]
struct RunningTool {
    session: SessionId,
    call: CallId,
    name: String,
    began: Instant,
    message: String,
    fraction: Option<f64>,
}

impl Activity {
    /// Nothing yet.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            silent: now,
            writing: None,
            tools: Vec::new(),
            input: 0,
            output: 0,
            asked: None,
        }
    }

    /// Takes in the next chunk.
    pub(super) fn take(&mut self, chunk: &Chunk, now: Instant) {
        match &chunk.kind {
            ChunkKind::ToolArgDelta { .. } => return,
            ChunkKind::ToolArgStart { tool, .. } => self.writing = Some(shortened(tool, MOST)),
            ChunkKind::ToolProgress { call, message, fraction } => {
                if let Some(tool) = self.tools.iter_mut().find(|tool| tool.is(chunk, call)) {
                    tool.message = shortened(message, MOST);
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
                    name: shortened(name, MOST),
                    began: now,
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
        self.silent = now;
    }

    /// Takes in how many tokens were used so far.
    pub(super) fn count(&mut self, input: u64, output: u64) {
        (self.input, self.output) = (input, output);
    }

    /// Takes in that the run was asked to stop.
    pub(super) fn ask(&mut self, what: &'static str) {
        self.asked = Some(what);
    }

    /// The line: what matters most comes first, for the end may be cut off.
    pub(super) fn line(&self, now: Instant) -> String {
        let whole = now.duration_since(self.began);
        let mut parts: Vec<_> = self.asked.map(str::to_owned).into_iter().collect();
        parts.extend(self.tools.iter().take(NAMED).map(|tool| tool.tell(now)));
        if self.tools.len() > NAMED {
            parts.push(format!("{} more", self.tools.len() - NAMED));
        }
        if self.tools.is_empty() {
            let silent = duration(tenths(now.duration_since(self.silent)));
            parts.push(match &self.writing {
                Some(tool) => format!("the model is writing a call of {tool} {silent}"),
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
    /// Whether it is this call of the session that shows the chunk.
    fn is(&self, chunk: &Chunk, call: &CallId) -> bool {
        self.session == chunk.session && self.call == *call
    }

    fn tell(&self, now: Instant) -> String {
        let mut told = self.name.clone();
        if let Some(fraction) = self.fraction.filter(|fraction| fraction.is_finite()) {
            let fraction = fraction.clamp(0.0, 1.0);
            let full = (fraction * BLOCKS as f64) as usize;
            let bar = "▰".repeat(full) + &"▱".repeat(BLOCKS.saturating_sub(full));
            told.push_str(&format!(" {bar} {}%", (fraction * 100.0) as u32));
        }
        if !self.message.is_empty() {
            told.push_str(&format!(" {}", self.message));
        }
        told.push_str(&format!(" {}", duration(tenths(now.duration_since(self.began)))));
        told
    }
}

/// Not more precise than the line is drawn.
fn tenths(duration: Duration) -> Duration {
    Duration::from_millis(duration.as_millis() as u64 / 100 * 100)
}

/// `340`, `1.2k`, `12k`, `3.4M`.
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
