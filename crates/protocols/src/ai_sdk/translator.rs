//! The translator of one response.

mod calls;

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::RunRecord;
use helix_agents_core::stream::{Attempt, Chunk, StoredChunk};
use helix_agents_core::usage::Usage;
use serde_json::{Value, json};

use super::{FinishReason, Major, Seen, UiChunk, message_id};
use crate::custom::shown_name;
use crate::errors::ErrorTexts;
use crate::turn::{Folds, RunEnd, SubAgent, TurnEvent, TurnReader, replay};
use crate::usage::tokens;
use calls::Calls;

/// Options of the messages and chunks for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Options {
    /// The major version of the package `ai` in the page.
    pub major: Major,
    /// The errors whose messages are shown.
    pub error_texts: ErrorTexts,
}

impl Options {
    /// Sets the major version of the package `ai` in the page.
    #[must_use]
    pub fn major(mut self, major: Major) -> Self {
        self.major = major;
        self
    }

    /// Sets the errors whose messages are shown.
    #[must_use]
    pub fn error_texts(mut self, error_texts: ErrorTexts) -> Self {
        self.error_texts = error_texts;
        self
    }
}

/// The state of a response after some of its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// More chunks follow.
    Open,
    /// The response is complete. The server ends it with [`sse::DONE`](crate::sse::DONE).
    Done,
    /// Chunks are missing. The server breaks the connection, so that the page resumes and gets the whole message.
    Broken,
}

/// Translates one turn of a session into the chunks of one response.
///
/// It is a pure state machine, one per connection. The server [begins](Self::begin) with the session's page, then adds
/// the page's live chunks and everything that follows in the stream, until the translator is [done](Progress::Done).
///
/// # Examples
///
/// ```
/// use helix_agents_core::session::Session;
/// use helix_agents_core::stream::{Chunk, ChunkKind};
/// use helix_agents_protocols::ai_sdk::{Options, Progress, Translator, UiChunk};
/// use helix_agents_protocols::turn::Folds;
///
/// let session = Session::new("chat".into());
/// let mut translator = Translator::new(&Folds::new(&session), Options::default());
/// let mut out = Vec::new();
/// assert_eq!(translator.begin(&Folds::new(&session), &mut out), Progress::Open);
///
/// let chunk = |kind| {
///     let (agent, session, run) = ("clerk".into(), "chat".into(), "r1".into());
///     Chunk { agent, session, run, step: 1, at: Default::default(), kind }
/// };
/// let text = ChunkKind::TextDelta { delta: "Hello".to_owned() };
/// translator.push_chunk(None, &chunk(text), &mut out);
/// let end = ChunkKind::RunEnded { status: "completed".to_owned(), usage: None };
/// assert_eq!(translator.push_chunk(None, &chunk(end), &mut out), Progress::Done);
/// assert!(matches!(out.first(), Some(UiChunk::Start { .. })));
/// assert!(matches!(out.last(), Some(UiChunk::Finish { .. })));
/// ```
#[derive(Debug)]
pub struct Translator {
    reader: TurnReader,
    writer: Writer,
    turn: u32,
}

impl Translator {
    /// Creates the translator of the present turn for a page that has none of it.
    #[must_use]
    pub fn new(folds: &Folds<'_>, options: Options) -> Self {
        let turn = folds.root().turn();
        let run = folds.root().last_run().filter(|run| run.turn == turn);
        Self::of_turn(folds, turn, run, options)
    }

    /// Creates the translator of a turn, whose last run is `run`.
    pub(super) fn of_turn(
        folds: &Folds<'_>,
        turn: u32,
        run: Option<&RunRecord>,
        options: Options,
    ) -> Self {
        let session = folds.root().id().clone();
        let reader = TurnReader::new(session.clone());
        // All answers to calls of earlier turns were handled.
        let is_present = turn == folds.root().turn();
        let reader = if is_present { reader.with_answers(folds) } else { reader };
        let writer = Writer::new(session, run.map(|run| run.id.clone()), options);
        Self { reader, writer, turn }
    }

    /// Omits what the page has already. Use it for the response to a page's answers, and for no other.
    #[must_use]
    pub fn continuing(mut self, seen: Seen) -> Self {
        self.writer.seen = Some(seen);
        self
    }

    /// Returns an error if the fold does not contain a run yet. The stream lags behind the log, so the page that is read
    /// right after a run was started may be older than the run. Read it again then.
    ///
    /// # Errors
    /// Returns [`ErrorCode::RunNotFound`] if the fold does not contain the run.
    pub fn check_contains(folds: &Folds<'_>, run: &RunId) -> Result<()> {
        if folds.root().run(run).is_some() {
            return Ok(());
        }
        let message = "the page does not contain the run yet";
        Err(Error::new(ErrorCode::RunNotFound, message).with_context("run", run))
    }

    /// Starts the response: adds the recorded part of the turn. The response is complete if the turn's last run has
    /// ended.
    pub fn begin(&mut self, folds: &Folds<'_>, out: &mut Vec<UiChunk>) -> Progress {
        let message_id = Some(message_id(folds.root().id(), self.turn));
        let message_metadata = Some(self.metadata(None));
        out.push(UiChunk::Start { message_id, message_metadata });
        let mut progress = Progress::Open;
        for chunk in replay(folds, self.turn) {
            progress = self.push_chunk(None, &chunk, out);
        }
        progress
    }

    /// Returns `true` if the translator holds a chunk back, because it shows texts of sub-agents only a few times a second.
    #[must_use]
    pub fn has_delayed(&self) -> bool {
        self.reader.has_delayed()
    }

    /// Adds what is held back. For a server that has received nothing for [`DELAY`](Self::DELAY).
    pub fn flush(&mut self, out: &mut Vec<UiChunk>) {
        let writer = &mut self.writer;
        self.reader.flush(&mut |event| writer.take(&event, out));
    }

    /// The time for which a chunk is held back at most, if the server calls [`flush`](Self::flush).
    pub const DELAY: Duration = Duration::from_millis(250);

    /// Adds a chunk of the stream.
    pub fn push(&mut self, stored: &StoredChunk, out: &mut Vec<UiChunk>) -> Progress {
        let writer = &mut self.writer;
        self.reader.read_stored(stored, &mut |event| writer.take(&event, out));
        writer.progress
    }

    /// Adds a chunk, which belongs to an attempt unless it was replayed.
    pub fn push_chunk(
        &mut self,
        attempt: Option<Attempt>,
        chunk: &Chunk,
        out: &mut Vec<UiChunk>,
    ) -> Progress {
        let writer = &mut self.writer;
        self.reader.read(attempt, chunk, &mut |event| writer.take(&event, out));
        writer.progress
    }

    /// Returns the metadata of the message, merged into what the chunks have set.
    pub(super) fn metadata(&self, set: Option<Value>) -> Value {
        let mut metadata = json!({ "session": self.writer.session.as_str(), "turn": self.turn });
        if let (Value::Object(metadata), Some(run)) = (&mut metadata, &self.writer.run) {
            metadata.insert("run".to_owned(), run.as_str().into());
        }
        if let (Value::Object(metadata), Some(Value::Object(set))) = (&mut metadata, set) {
            metadata.extend(set);
        }
        metadata
    }
}

/// The kind of an open part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Visible,
    Reasoning,
}

/// Writes the chunks for the events of a turn.
#[derive(Debug)]
struct Writer {
    session: SessionId,
    run: Option<RunId>,
    options: Options,
    seen: Option<Seen>,
    /// The open text or reasoning part.
    open: Option<(Text, String)>,
    /// The number of text and reasoning parts of the step.
    texts: u32,
    /// The number of steps of the message so far.
    step: u32,
    calls: Calls,
    /// Whether the last chunk, except for ends of steps, starts a step.
    is_step_empty: bool,
    /// The token usage of the turn, once it has ended.
    usage: Option<Usage>,
    progress: Progress,
}

impl Writer {
    fn new(session: SessionId, run: Option<RunId>, options: Options) -> Self {
        Self {
            session,
            run,
            options,
            seen: None,
            open: None,
            texts: 0,
            step: 0,
            calls: Calls::default(),
            is_step_empty: false,
            usage: None,
            progress: Progress::Open,
        }
    }

    fn put(&mut self, chunk: UiChunk, out: &mut Vec<UiChunk>) {
        let is_needed = match &self.seen {
            Some(seen) => seen.needs(&chunk, self.step),
            None => true,
        };
        if is_needed {
            match &chunk {
                UiChunk::StartStep => self.is_step_empty = true,
                UiChunk::FinishStep => {}
                _ => self.is_step_empty = false,
            }
            out.push(chunk);
        }
    }

    fn take(&mut self, event: &TurnEvent<'_>, out: &mut Vec<UiChunk>) {
        match event {
            TurnEvent::RunChanged { run } => self.change_run(run, out),
            TurnEvent::StepStarted { .. } => self.start_step(out),
            TurnEvent::Text { delta } => self.add_text(Text::Visible, delta, out),
            TurnEvent::Reasoning { delta } => self.add_text(Text::Reasoning, delta, out),
            TurnEvent::SubAgentChanged { sub_agent } => {
                let data = sub_agent_data(sub_agent);
                self.put(UiChunk::data("subagent", sub_agent.session.as_str(), data), out);
            }
            TurnEvent::Custom { name, data, id } => {
                self.put(UiChunk::data(&shown_name(name), id, value(data)), out);
            }
            TurnEvent::StateChanged { patch } => {
                let patch = serde_json::to_value(patch).unwrap_or_default();
                self.put(UiChunk::transient("state-patch", patch), out);
            }
            TurnEvent::StepReset { step } => self.reset_step(*step, out),
            TurnEvent::StepFinished { .. } => {
                self.close_text(out);
                self.put(UiChunk::FinishStep, out);
            }
            TurnEvent::Output { output, is_text: false } => {
                self.close_text(out);
                self.put(UiChunk::data("output", "output", value(output)), out);
            }
            // The next start of the call sets it back.
            TurnEvent::Output { is_text: true, .. } | TurnEvent::CallReset { .. } => {}
            TurnEvent::Usage { usage } => self.usage = Some(*usage),
            TurnEvent::RunEnded(end) => self.end(end, out),
            TurnEvent::Resync => self.progress = Progress::Broken,
            call => self.take_call(call, out),
        }
    }

    fn change_run(&mut self, run: &RunId, out: &mut Vec<UiChunk>) {
        if self.run.as_ref() != Some(run) {
            self.run = Some(run.clone());
            let message_metadata = self.run_metadata();
            self.put(UiChunk::MessageMetadata { message_metadata }, out);
        }
    }

    fn run_metadata(&self) -> Value {
        json!({ "run": self.run.as_ref().map(RunId::as_str).unwrap_or_default() })
    }

    fn start_step(&mut self, out: &mut Vec<UiChunk>) {
        self.close_text(out);
        self.step += 1;
        self.texts = 0;
        self.put(UiChunk::StartStep, out);
    }

    fn add_text(&mut self, kind: Text, delta: &str, out: &mut Vec<UiChunk>) {
        let delta = delta.to_owned();
        let id = match &self.open {
            Some((open, id)) if *open == kind => id.clone(),
            _ => self.open_text(kind, out),
        };
        self.put(
            match kind {
                Text::Visible => UiChunk::TextDelta { id, delta },
                Text::Reasoning => UiChunk::ReasoningDelta { id, delta },
            },
            out,
        );
    }

    fn open_text(&mut self, kind: Text, out: &mut Vec<UiChunk>) -> String {
        self.close_text(out);
        // The client keeps the id of a reasoning part, so it is the same in every response.
        let id = format!("{}-{}", self.step, self.texts);
        self.texts += 1;
        self.open = Some((kind, id.clone()));
        let start = match kind {
            Text::Visible => UiChunk::TextStart { id: id.clone() },
            Text::Reasoning => UiChunk::ReasoningStart { id: id.clone() },
        };
        self.put(start, out);
        id
    }

    fn close_text(&mut self, out: &mut Vec<UiChunk>) {
        match self.open.take() {
            Some((Text::Visible, id)) => self.put(UiChunk::TextEnd { id }, out),
            Some((Text::Reasoning, id)) => self.put(UiChunk::ReasoningEnd { id }, out),
            None => {}
        }
    }

    fn reset_step(&mut self, step: u32, out: &mut Vec<UiChunk>) {
        match self.options.major {
            Major::Seven => {
                self.open = None;
                self.texts = 0;
                self.calls.forget_step(self.step);
                self.put(UiChunk::ResetStep, out);
            }
            // Version 6 cannot take anything back. The discarded parts end, and a new step follows.
            Major::Six => {
                self.close_text(out);
                for call in self.calls.drafts_of(self.step) {
                    self.put(call.discarded(), out);
                }
                self.calls.forget_step(self.step);
                let data = json!({ "step": step });
                self.put(UiChunk::data("discarded", &format!("step-{}", self.step), data), out);
                self.put(UiChunk::FinishStep, out);
                self.start_step(out);
            }
        }
    }

    fn end(&mut self, end: &RunEnd<'_>, out: &mut Vec<UiChunk>) {
        self.close_text(out);
        // A part that is left open stays open in the page. These calls run once the turn continues.
        for call in self.calls.drafts_of(self.step) {
            self.put(call.written(), out);
        }
        self.progress = Progress::Done;
        let finish_reason = match end {
            RunEnd::Failed { error } => {
                let text = error.map_or_else(
                    || "the run failed".to_owned(),
                    |error| self.options.error_texts.of(error),
                );
                if let Some(error) = error {
                    let message_metadata =
                        json!({ "error": { "code": error.code, "kind": error.kind } });
                    self.put(UiChunk::MessageMetadata { message_metadata }, out);
                }
                return self.put(UiChunk::Error { error_text: text }, out);
            }
            RunEnd::Completed => FinishReason::Stop,
            RunEnd::Suspended => FinishReason::ToolCalls,
            RunEnd::Interrupted { .. } | RunEnd::Aborted => match self.options.major {
                Major::Seven => FinishReason::Interrupted,
                Major::Six => FinishReason::Other,
            },
        };
        // The page would send its answers again as long as they are in the last step.
        let questions = self.seen.iter().flat_map(|seen| seen.questions(self.step));
        if self.calls.would_resend_answers(self.step, *end == RunEnd::Suspended, questions) {
            self.start_step(out);
            self.put(UiChunk::FinishStep, out);
        }
        // The client takes a step over with the next chunk that changes something else.
        if self.is_step_empty {
            let message_metadata = self.run_metadata();
            self.put(UiChunk::MessageMetadata { message_metadata }, out);
        }
        match end {
            RunEnd::Interrupted { reason } => {
                self.put(UiChunk::Abort { reason: reason.map(str::to_owned) }, out);
            }
            RunEnd::Aborted => self.put(UiChunk::Abort { reason: None }, out),
            _ => {}
        }
        let usage = self.usage.filter(|usage| *end == RunEnd::Completed && !usage.is_zero());
        let message_metadata = usage.map(|usage| json!({ "usage": tokens(&usage) }));
        let finish_reason = Some(finish_reason);
        self.put(UiChunk::Finish { finish_reason, message_metadata }, out);
    }
}

/// Returns JSON text as a value. Text that is not JSON becomes a string.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn sub_agent_data(sub_agent: &SubAgent) -> Value {
    let SubAgent { session, name, call, status, text, .. } = sub_agent;
    let mut data = json!({
        "id": session.as_str(),
        "name": **name,
        "call": call,
        "status": status.as_str(),
    });
    if let (Value::Object(data), false) = (&mut data, text.is_empty()) {
        data.insert("text".to_owned(), text.as_str().into());
    }
    data
}
