//! The translator of one response.

mod calls;
mod sub_agents;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use helix_agents_core::error::{Error, ErrorCode, ErrorRecord, Result};
use helix_agents_core::event::PendingCall;
use helix_agents_core::id::RunId;
use helix_agents_core::stream::{Attempt, Chunk, StoredChunk};
use helix_agents_core::usage::Usage;
use serde_json::{Value, json};

use super::{Event, Message, Outcome, PROTOCOL_VERSION, history};
use crate::custom::shown_name;
use crate::errors::ErrorTexts;
use crate::turn::{Folds, RunEnd, TurnEvent, TurnReader, TurnRecord, replay, replay_record};
use crate::usage::tokens;
use calls::Calls;
use sub_agents::SubAgents;

/// Options of the messages and events for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Options {
    /// The errors whose messages are shown.
    pub error_texts: ErrorTexts,
}

impl Options {
    /// Sets the errors whose messages are shown.
    #[must_use]
    pub fn error_texts(mut self, error_texts: ErrorTexts) -> Self {
        self.error_texts = error_texts;
        self
    }
}

/// The state of a response after some of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// More events follow.
    Open,
    /// The response is complete.
    Done,
    /// Something has to be taken back, chunks are missing, or the run waits and its questions have to be read from the
    /// log. The server reads the session's page again and calls [`Translator::reload`].
    Reload,
}

/// Translates one turn of a session into the events of one response.
///
/// It is a pure state machine, one per connection. The server [begins](Self::begin) with the session's page, then adds
/// the page's live chunks and everything that follows in the stream, until the translator is [done](Progress::Done).
///
/// # Examples
///
/// ```
/// use helix_agents_core::session::Session;
/// use helix_agents_core::stream::{Chunk, ChunkKind};
/// use helix_agents_protocols::ag_ui::{Event, Options, Progress, Translator};
/// use helix_agents_protocols::turn::Folds;
///
/// let session = Session::new("chat".into());
/// let mut translator = Translator::new(&Folds::new(&session), "run-1", Options::default());
/// let mut out = Vec::new();
/// assert_eq!(translator.begin(&Folds::new(&session), &mut out), Progress::Open);
///
/// let kind = ChunkKind::RunEnded { status: "completed".to_owned(), usage: None };
/// let (agent, session, run) = ("clerk".into(), "chat".into(), "r1".into());
/// let end = Chunk { agent, session, run, step: 1, at: Default::default(), kind };
/// assert_eq!(translator.push_chunk(None, &end, &mut out), Progress::Done);
/// assert!(matches!(out.first(), Some(Event::RunStarted { .. })));
/// assert!(matches!(out.last(), Some(Event::RunFinished { .. })));
/// ```
#[derive(Debug)]
pub struct Translator {
    reader: TurnReader,
    writer: Writer,
    options: Options,
}

impl Translator {
    /// Creates the translator of the present turn. `run` is the run that the client asked for.
    #[must_use]
    pub fn new(folds: &Folds<'_>, run: impl Into<String>, options: Options) -> Self {
        let session = folds.root().id().clone();
        let writer = Writer::new(session.to_string(), run.into(), options);
        let reader = TurnReader::new(session).with_answers(folds);
        Self { reader, writer, options }
    }

    /// Takes back reasoning that the client has and the log does not contain: the client keeps the reasoning of a
    /// connection that was cut, and would add the same reasoning to it again. `ids` is
    /// [`RunAgentInput::reasoning`](super::RunAgentInput::reasoning). Call it before [`begin`](Self::begin).
    #[must_use]
    pub fn with_client_reasoning(mut self, ids: impl IntoIterator<Item = String>) -> Self {
        self.writer.reasoning.extend(ids);
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

    /// Starts the response with snapshots of the messages and the state. The response is complete if the turn's last run
    /// has ended.
    pub fn begin(&mut self, folds: &Folds<'_>, out: &mut Vec<Event>) -> Progress {
        out.push(Event::RunStarted {
            thread_id: self.writer.thread.clone(),
            run_id: self.writer.run.clone(),
            protocol_version: PROTOCOL_VERSION,
        });
        self.show(folds, out)
    }

    /// Continues the response with new snapshots, which take back what the log does not contain.
    pub fn reload(&mut self, folds: &Folds<'_>, out: &mut Vec<Event>) -> Progress {
        self.writer.close_parts(out);
        self.writer.finish_step(out);
        let (thread, run) = (self.writer.thread.clone(), self.writer.run.clone());
        let writer = Writer::new(thread, run, self.options);
        let before = std::mem::replace(&mut self.writer, writer);
        self.writer.sub_agents = before.sub_agents;
        self.writer.reasoning = before.reasoning;
        self.reader = TurnReader::new(folds.root().id().clone()).with_answers(folds);
        self.show(folds, out)
    }

    /// Adds the snapshots, and brings the translator to the state that they show.
    fn show(&mut self, folds: &Folds<'_>, out: &mut Vec<Event>) -> Progress {
        let mut messages = history(folds, self.options);
        // The client keeps reasoning that a snapshot does not contain, if the snapshot contains none.
        let known: BTreeSet<_> = messages.iter().map(|message| message.id().to_owned()).collect();
        for id in std::mem::take(&mut self.writer.reasoning) {
            if !known.contains(&id) {
                messages.push(Message::Reasoning { id, content: String::new() });
            }
        }
        out.push(Event::MessagesSnapshot { messages });
        let state = folds.root().state();
        let snapshot = if state.is_null() { json!({}) } else { Value::clone(state) };
        out.push(Event::StateSnapshot { snapshot });
        self.writer.recorded = Some(folds.pending());
        self.writer.sub_agents.silence();
        let mut shown = Vec::new();
        let mut progress = Progress::Open;
        for chunk in replay(folds, folds.root().turn()) {
            progress = self.push_chunk(None, &chunk, &mut shown);
        }
        self.writer.recorded = None;
        // The recorded parts are complete.
        self.writer.close_parts(&mut Vec::new());
        let Writer { thread, step, sub_agents, .. } = &mut self.writer;
        sub_agents.speak(thread, out);
        if progress == Progress::Done {
            sub_agents.finish_all(out);
            out.extend(shown.pop());
        } else {
            out.extend(step.map(step_started));
        }
        progress
    }

    /// Adds a chunk of the stream.
    pub fn push(&mut self, stored: &StoredChunk, out: &mut Vec<Event>) -> Progress {
        let writer = &mut self.writer;
        if writer.progress == Progress::Open {
            self.reader.read_stored(stored, &mut |event| writer.take(&event, out));
        }
        writer.progress
    }

    /// Adds a chunk, which belongs to an attempt unless it was replayed.
    pub fn push_chunk(
        &mut self,
        attempt: Option<Attempt>,
        chunk: &Chunk,
        out: &mut Vec<Event>,
    ) -> Progress {
        let writer = &mut self.writer;
        if writer.progress == Progress::Open {
            self.reader.read(attempt, chunk, &mut |event| writer.take(&event, out));
        }
        writer.progress
    }
}

/// Returns the events of the recorded part of a turn, for each chunk with its step.
pub(super) fn replayed(
    folds: &Folds<'_>,
    record: &TurnRecord<'_>,
    options: Options,
) -> impl Iterator<Item = (u32, Vec<Event>)> {
    let root = folds.root().id().clone();
    let mut reader = TurnReader::new(root.clone());
    if record.turn == folds.root().turn() {
        reader = reader.with_answers(folds);
    }
    let mut writer = Writer::new(root.to_string(), String::new(), options);
    writer.recorded = Some(BTreeMap::new());
    let mut step = 0;
    replay_record(folds, record).into_iter().map(move |chunk| {
        if chunk.session == root {
            step = chunk.step;
        }
        let mut out = Vec::new();
        reader.read(None, &chunk, &mut |event| writer.take(&event, &mut out));
        (step, out)
    })
}

fn step_started(step: u32) -> Event {
    Event::StepStarted { step_name: step_name(step) }
}

fn step_name(step: u32) -> String {
    format!("step-{step}")
}

/// The kind of an open message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Visible,
    Reasoning,
}

/// Writes the events of a turn.
#[derive(Debug)]
struct Writer {
    thread: String,
    run: String,
    options: Options,
    /// The open text or reasoning message.
    open: Option<(Text, String)>,
    /// The open step.
    step: Option<u32>,
    /// The number of the last step, which the messages of calls belong to.
    last_step: u32,
    calls: Calls,
    sub_agents: SubAgents,
    /// The ids of all reasoning messages that the client may have.
    reasoning: BTreeSet<String>,
    result: Option<Value>,
    /// The token usage of the turn, once it has ended.
    usage: Option<Usage>,
    /// The pending calls of the log, while the log is shown.
    recorded: Option<BTreeMap<String, Arc<PendingCall>>>,
    progress: Progress,
}

impl Writer {
    fn new(thread: String, run: String, options: Options) -> Self {
        Self {
            thread,
            run,
            options,
            open: None,
            step: None,
            last_step: 0,
            calls: Calls::default(),
            sub_agents: SubAgents::default(),
            reasoning: BTreeSet::new(),
            result: None,
            usage: None,
            recorded: None,
            progress: Progress::Open,
        }
    }

    fn take(&mut self, event: &TurnEvent<'_>, out: &mut Vec<Event>) {
        if self.progress != Progress::Open {
            return;
        }
        match event {
            TurnEvent::StepStarted { step } => {
                self.close_parts(out);
                (self.step, self.last_step) = (Some(*step), *step);
                out.push(step_started(*step));
            }
            TurnEvent::Text { delta } => self.add_text(Text::Visible, delta, out),
            TurnEvent::Reasoning { delta } => self.add_text(Text::Reasoning, delta, out),
            TurnEvent::SubAgentChanged { sub_agent } => {
                let is_shown = self.calls.is_introduced(&sub_agent.call);
                self.sub_agents.take(sub_agent, &self.thread, is_shown, out);
            }
            TurnEvent::Custom { name, data, .. } => {
                out.push(Event::Custom { name: shown_name(name).into(), value: value(data) });
            }
            TurnEvent::StateChanged { patch } => {
                out.push(Event::StateDelta { delta: (*patch).clone() });
            }
            TurnEvent::StepFinished { .. } => {
                self.close_parts(out);
                self.finish_step(out);
            }
            TurnEvent::Output { output, is_text: false } => {
                self.result = Some(value(output)).filter(|result| !result.is_null());
            }
            TurnEvent::Usage { usage } => self.usage = Some(*usage),
            TurnEvent::RunEnded(end) => self.end(end, out),
            TurnEvent::StepReset { .. } | TurnEvent::CallReset { .. } | TurnEvent::Resync => {
                self.progress = Progress::Reload;
            }
            TurnEvent::RunChanged { .. } | TurnEvent::Output { is_text: true, .. } => {}
            call => self.take_call(call, out),
        }
    }

    fn add_text(&mut self, kind: Text, delta: &str, out: &mut Vec<Event>) {
        let message_id = match kind {
            Text::Visible => self.message_id(),
            Text::Reasoning => format!("r-{}", self.message_id()),
        };
        let delta = delta.to_owned();
        if self.open.as_ref().is_none_or(|(open, _)| *open != kind) {
            self.close_text(out);
            self.open = Some((kind, message_id.clone()));
            match kind {
                Text::Visible => {
                    let role = "assistant";
                    out.push(Event::TextMessageStart { message_id: message_id.clone(), role });
                }
                Text::Reasoning => {
                    self.reasoning.insert(message_id.clone());
                    let role = "reasoning";
                    out.push(Event::ReasoningStart { message_id: message_id.clone() });
                    out.push(Event::ReasoningMessageStart { message_id: message_id.clone(), role });
                }
            }
        }
        out.push(match kind {
            Text::Visible => Event::TextMessageContent { message_id, delta },
            Text::Reasoning => Event::ReasoningMessageContent { message_id, delta },
        });
    }

    /// Returns the id of the message of the present step.
    fn message_id(&self) -> String {
        format!("a{}", self.last_step)
    }

    /// Ends the open message and the arguments of open calls.
    fn close_parts(&mut self, out: &mut Vec<Event>) {
        self.close_text(out);
        self.calls.close_all_arguments(out);
    }

    /// Ends the open message. The model may continue the arguments of calls after it.
    fn close_text(&mut self, out: &mut Vec<Event>) {
        match self.open.take() {
            Some((Text::Visible, message_id)) => out.push(Event::TextMessageEnd { message_id }),
            Some((Text::Reasoning, message_id)) => {
                out.push(Event::ReasoningMessageEnd { message_id: message_id.clone() });
                out.push(Event::ReasoningEnd { message_id });
            }
            None => {}
        }
    }

    fn finish_step(&mut self, out: &mut Vec<Event>) {
        let step = self.step.take();
        out.extend(step.map(|step| Event::StepFinished { step_name: step_name(step) }));
    }

    fn end(&mut self, end: &RunEnd<'_>, out: &mut Vec<Event>) {
        let outcome = match (end, &self.recorded) {
            (RunEnd::Failed { error }, _) => return self.fail(*error, out),
            (RunEnd::Completed, _) => Outcome::Success { pending_tool_call_ids: Vec::new() },
            (RunEnd::Interrupted { .. } | RunEnd::Aborted, _) => Outcome::Cancelled,
            (RunEnd::Suspended, Some(recorded)) => self.calls.open_questions(recorded),
            // Snapshots precede the questions, whose schemas and deadlines only the log contains.
            (RunEnd::Suspended, None) => {
                self.progress = Progress::Reload;
                return;
            }
        };
        self.close_all(out);
        let usage = self.usage.filter(|usage| *end == RunEnd::Completed && !usage.is_zero());
        let usage = usage.iter().map(tokens).collect();
        let (thread_id, run_id) = (self.thread.clone(), self.run.clone());
        let result = self.result.take();
        out.push(Event::RunFinished { thread_id, run_id, result, outcome, usage });
    }

    fn fail(&mut self, error: Option<&ErrorRecord>, out: &mut Vec<Event>) {
        self.close_all(out);
        let message = error.map_or_else(
            || "the run failed".to_owned(),
            |error| self.options.error_texts.of(error),
        );
        let code = error.map(|error| error.code.clone().into_owned());
        out.push(Event::RunError { message, code });
    }

    /// Ends everything that is open, because the response ends.
    fn close_all(&mut self, out: &mut Vec<Event>) {
        self.progress = Progress::Done;
        self.close_parts(out);
        self.finish_step(out);
        self.sub_agents.finish_all(out);
    }
}

/// Returns JSON text as a value. Text that is not JSON becomes a string.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
