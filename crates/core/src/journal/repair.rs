//! Repair of a stream that is behind the log because its writer crashed.

use std::sync::Arc;

use super::delete::clear_stream;
use super::load::not_found;
use super::{SessionReader, load_events};
use crate::clock::IdSourceExt as _;
use crate::clock::{Clock, IdSource};
use crate::error::Result;
use crate::event::{Event, RecordedEvent, ToolFinish, Trigger};
use crate::id::{RunId, SessionId};
use crate::machine::session::Session;
use crate::machine::session::event_chunks::{for_each_event_chunk, late_end};
use crate::mutant;
use crate::store::{Head, SessionStatus, StateStore};
use crate::stream::{
    Attempt, Batch, Boundary, Chunk, ChunkKind, Effect, OpenAttempt, StreamInfo, StreamManager,
    StreamOp, Watermark, Writer,
};

/// The operations that bring a stream into line with the log after its writer crashed.
#[derive(Debug, Default)]
pub struct StreamRepair {
    /// Open attempts whose outcome was recorded in time by the run that started them.
    pub settled: Vec<Attempt>,
    /// All other open attempts of the session: their effect has no outcome, or another run recorded it, or it was
    /// recorded late.
    pub discarded: Vec<Attempt>,
    /// Chunks without an attempt that show the events of the log after the last watermark.
    pub boundaries: Vec<Boundary>,
}

/// Computes which parts of the log up to `version` the stream lacks, for the run that is about to continue the session.
/// If the stream contains nothing of the session, the repair covers only the events since the last run that ended.
/// Earlier events are available from the log.
///
/// # Errors
/// Returns the errors of the store and the stream manager.
pub async fn plan_stream_repair(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    clock: &dyn Clock,
    session: &Session,
    version: u64,
) -> Result<StreamRepair> {
    let mut info = streams.info(session.root()).await?;
    // A later run may have started since the session was read. It settles or discards its attempts itself.
    let Writer { fencing_token, .. } = session.stream_writer();
    info.open.retain(|open| open.fencing_token <= fencing_token);
    missing_operations(store, clock, session, version, &info).await
}

/// Computes the missing stream operations of a session. If `info` was read after the session, the caller must first
/// remove the attempts of later runs.
async fn missing_operations(
    store: &dyn StateStore,
    clock: &dyn Clock,
    session: &Session,
    version: u64,
    info: &StreamInfo,
) -> Result<StreamRepair> {
    let mut found = StreamRepair::default();
    let marked = info.watermark_version(session.id(), session.created_at());
    let open = info.open.iter().filter(|open| open.session == *session.id());
    let open: Vec<_> = open.cloned().collect();
    let needs_log = |open: &OpenAttempt| may_be_recorded_by_another(session, open);
    let events = if marked < version || open.iter().any(needs_log) {
        load_own_events(store, session).await?
    } else {
        Vec::new()
    };
    let shown_before = match marked {
        0 => version_before_open_turn(&events, version).unwrap_or(version),
        marked => marked,
    };
    let late: Vec<_> = late_results(&events)
        .filter(|(seq, _)| *seq > shown_before && *seq <= version)
        .map(|(seq, finish)| (seq, &finish.call))
        .collect();
    // Late results are shown by chunks without an attempt, so an open attempt of such a call is discarded.
    let is_late = |effect: &Effect| match effect {
        Effect::Model { .. } => false,
        Effect::Tool { call } | Effect::Child { call } => {
            late.iter().any(|(_, late)| *late == call)
                || session.late_results().iter().any(|(_, finish)| finish.call == *call)
        }
    };
    let (recorded, unrecorded): (Vec<_>, Vec<_>) = open
        .into_iter()
        .partition(|open| session.has_outcome(&open.effect) && !is_late(&open.effect));
    if !mutant!("attempts-left") {
        found.discarded.extend(unrecorded.into_iter().map(|open| open.attempt));
        for open in recorded {
            // The outcome may belong to another run: to a later one, whose own attempt the stream
            // could not show, or to an earlier one, which recorded it late.
            let is_own = events.is_empty() || has_recorded(session, &events, &open);
            if is_own { &mut found.settled } else { &mut found.discarded }.push(open.attempt);
        }
    }
    if marked < version {
        let finishes = |step: u32| -> Vec<&ToolFinish> {
            let all = events.iter().filter_map(|recorded| match &recorded.event {
                Event::ToolFinished(finish) => Some(&**finish),
                _ => None,
            });
            all.filter(|finish| finish.call.step() == Some(step)).collect()
        };
        // The session no longer holds the calls that a rewind removed.
        let is_rewind = |recorded: &RecordedEvent| {
            recorded.seq > shown_before && matches!(recorded.event, Event::Rewound { .. })
        };
        let mut past = events.iter().any(is_rewind).then(|| Session::new(session.id().clone()));
        for recorded in &events {
            if let Some(past) = &mut past {
                past.apply_recorded(recorded)?;
            }
            let session = past.as_ref().unwrap_or(session);
            if recorded.seq > shown_before && recorded.seq <= version {
                let mut kinds = Vec::new();
                let mut keep = |kind| kinds.push(kind);
                for_each_event_chunk(session, recorded.seq, &recorded.event, &finishes, &mut keep);
                let run = recorded.run.as_ref();
                if let Event::ToolFinished(finish) = &recorded.event
                    && late.iter().any(|(seq, _)| *seq == recorded.seq)
                {
                    kinds.extend(late_end(session, finish));
                }
                let version = recorded.seq;
                let chunks = kinds.into_iter().map(|kind| chunk(clock, session, run, kind));
                found
                    .boundaries
                    .extend(chunks.map(|chunk| Boundary { version, chunk: Arc::new(chunk) }));
            }
        }
    }
    Ok(found)
}

/// Loads the events of the log that the session was folded from. Fails if the session was deleted and created again.
async fn load_own_events(store: &dyn StateStore, session: &Session) -> Result<Vec<RecordedEvent>> {
    let events = load_events(store, session.id(), 0).await?;
    let starts = |recorded: &RecordedEvent, last: &RunId| matches!(&recorded.event, Event::RunStarted { run, .. } if run == last);
    let last = session.last_run().map(|run| &run.id);
    let is_own = last.is_none_or(|last| events.iter().any(|recorded| starts(recorded, last)));
    if is_own { Ok(events) } else { Err(not_found(session.id())) }
}

/// Returns `true` if the effect of an attempt has an outcome, and only the log tells whether the run that started the
/// attempt has recorded it.
fn may_be_recorded_by_another(session: &Session, open: &OpenAttempt) -> bool {
    let has_several_runs = match &open.effect {
        // Only results of calls are recorded by superseded runs.
        Effect::Model { .. } => false,
        Effect::Tool { call } | Effect::Child { call } => {
            let step = session.open_step().or(session.closed_step());
            step.is_none_or(|step| step.runs > 1 || call.step() != Some(step.reply.step))
        }
    };
    let is_of_earlier_run = open.fencing_token < session.stream_writer().fencing_token;
    session.has_outcome(&open.effect) && (is_of_earlier_run || has_several_runs)
}

/// Returns `true` if the run that started an attempt has recorded the outcome of its effect.
fn has_recorded(session: &Session, events: &[RecordedEvent], open: &OpenAttempt) -> bool {
    let run = |recorded: &RecordedEvent| session.run(recorded.run.as_ref()?);
    events
        .iter()
        .filter(|recorded| is_outcome(&recorded.event, &open.effect))
        .any(|recorded| run(recorded).is_some_and(|run| run.fencing_token == open.fencing_token))
}

/// Returns `true` if an event is the outcome of an attempt of an effect. For a tool call, a result without an execution
/// does not count. For a child, every result of its call counts.
#[must_use]
pub fn is_outcome(event: &Event, effect: &Effect) -> bool {
    match (effect, event) {
        (Effect::Model { step }, Event::ModelReplied(reply)) => reply.step == *step,
        (Effect::Tool { call }, Event::ToolFinished(finish)) => {
            finish.call == *call && finish.attempts > 0
        }
        (Effect::Child { call }, Event::ToolFinished(finish)) => finish.call == *call,
        (Effect::Tool { call } | Effect::Child { call }, Event::ChildStarted(child)) => {
            child.call == *call
        }
        _ => false,
    }
}

/// Returns the results that a run recorded after another run had taken over, each with its version.
fn late_results(events: &[RecordedEvent]) -> impl Iterator<Item = (u64, &ToolFinish)> {
    let mut current = None;
    events.iter().filter_map(move |recorded| match &recorded.event {
        Event::RunStarted { run, .. } => {
            current = Some(run);
            None
        }
        Event::ToolFinished(finish) if finish.attempts > 0 && recorded.run.as_ref() != current => {
            Some((recorded.seq, &**finish))
        }
        _ => None,
    })
}

/// Returns the version before the first run after the last run that ended, or `None` if there is no such run. Every run
/// since then took over from its predecessor. There are two exceptions. If the last run only aborted the session, its
/// end does not count, so that the crashed runs before it are covered as well. In a fork none of whose own runs has
/// ended, the result is the version before the fork event, which shows the shared run as interrupted.
fn version_before_open_turn(events: &[RecordedEvent], version: u64) -> Option<u64> {
    let mut first = None;
    let mut is_last_run = true;
    for recorded in events.iter().rev().filter(|recorded| recorded.seq <= version) {
        match &recorded.event {
            Event::RunStarted { .. } => {
                first = Some(recorded.seq - 1);
                is_last_run = false;
            }
            Event::Forked { .. } => return Some(recorded.seq - 1),
            // This is not necessarily the last event: messages may be queued after the end of a run.
            Event::RunEnded { .. } if is_last_run && is_abort(events, recorded.run.as_ref()) => {}
            Event::RunEnded { .. } => break,
            _ => {}
        }
    }
    first
}

/// Returns `true` if a run was started to abort its session.
fn is_abort(events: &[RecordedEvent], id: Option<&RunId>) -> bool {
    events.iter().any(|recorded| {
        let Event::RunStarted { run, trigger, .. } = &recorded.event else { return false };
        Some(run) == id && *trigger == Trigger::Abort
    })
}

/// Brings the stream of a session without a current run into line with the log. Its writer may have
/// crashed right after the last append. The session's open children, and those that an abort has to
/// stop, are repaired first, so that their ends are shown before that of the session. A child that
/// still runs shows its end itself. A child whose log cannot be read is skipped.
///
/// # Errors
/// Returns the errors of the store and the stream manager.
pub async fn repair_ended_stream(
    logs: SessionReader<'_>,
    streams: &dyn StreamManager,
    clock: &dyn Clock,
    ids: &dyn IdSource,
    session: &SessionId,
) -> Result<()> {
    let Some(head) = ended_head(logs, session).await? else { return Ok(()) };
    let info = streams.info(&head.created.root).await?;
    Repair { logs, streams, clock, ids, info }.session(head).await
}

/// Returns the head of a session without a current run.
async fn ended_head(logs: SessionReader<'_>, session: &SessionId) -> Result<Option<Head>> {
    let head = logs.store.head(session).await?;
    Ok(head.filter(|head| head.summary.run.is_none()))
}

/// The repair of a session and its children.
struct Repair<'a> {
    logs: SessionReader<'a>,
    streams: &'a dyn StreamManager,
    clock: &'a dyn Clock,
    ids: &'a dyn IdSource,
    /// The state of the tree's stream. The logs are read after it, so they contain the start of every run that has an
    /// open attempt in it.
    info: StreamInfo,
}

impl Repair<'_> {
    async fn session(&self, head: Head) -> Result<()> {
        let session = &head.session;
        let open = self.info.open.iter().any(|open| open.session == *session);
        let marked = self.info.watermark_version(session, head.created_at);
        let in_line = marked >= head.position.version && !open;
        // Without a current run, only a session that waits for calls or children is active. The process that aborted a
        // session may have crashed before it reached the children.
        if matches!(head.summary.status, SessionStatus::Active | SessionStatus::Aborted) {
            self.children(session).await?;
        }
        if in_line {
            return Ok(());
        }
        let fold = self.logs.load(session).await?;
        if fold.current_run().is_some() {
            // A run has started meanwhile. It repairs the stream itself.
            return Ok(());
        }
        let version = fold.position().version;
        let StreamRepair { settled, discarded, boundaries } =
            missing_operations(self.logs.store, self.clock, &fold, version, &self.info).await?;
        let origin = chunk(self.clock, &fold, None, ChunkKind::Checkpoint { version });
        let origin = Arc::new(origin);
        let watermark = Watermark { version, settled, discarded, origin, boundaries };
        let watermark = StreamOp::Watermark(Box::new(watermark));
        // The stream ignores this if a later run has already written to it. A later run that has not written yet repairs
        // the stream itself, and skips the boundaries that exist.
        let batch = Batch::new(self.ids.batch(), fold.stream_writer(), [watermark]);
        let root = &head.created.root;
        self.streams.write(root, batch).await?;
        // If the session was deleted after its log was read, the write has created its stream again.
        match self.logs.store.head(root).await? {
            Some(_) => Ok(()),
            None => clear_stream(self.logs.store, self.streams, root).await,
        }
    }

    async fn children(&self, session: &SessionId) -> Result<()> {
        // The overview does not require reading the whole log.
        let fold = self.logs.overview(session).await?;
        if fold.current_run().is_some() {
            return Ok(());
        }
        for child in fold.children_to_show() {
            let repaired = async {
                match ended_head(self.logs, &child.session).await? {
                    Some(head) => Box::pin(self.session(head)).await,
                    None => Ok(()),
                }
            };
            if let Err(error) = repaired.await {
                tracing::warn!(session = %child.session, %error, "the stream of a child could not be repaired");
            }
        }
        Ok(())
    }
}

fn chunk(clock: &dyn Clock, session: &Session, run: Option<&RunId>, kind: ChunkKind) -> Chunk {
    let last = session.last_run().map(|run| &run.id);
    Chunk {
        agent: Arc::clone(session.agent()),
        session: session.id().clone(),
        run: run.or(last).cloned().unwrap_or_else(|| RunId::from("")),
        step: session.last_step(),
        at: clock.now(),
        kind,
    }
}
