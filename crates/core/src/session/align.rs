//! Bringing a stream into line with the log after its writer died.

use std::sync::Arc;

use super::shown::of_event;
use super::{Session, load, load_events};
use crate::clock::Clock;
use crate::error::Result;
use crate::event::{Event, RecordedEvent, ToolFinish};
use crate::id::{RunId, SessionId};
use crate::store::StateStore;
use crate::stream::{Attempt, Chunk, ChunkKind, Mark, StreamManager};

/// What a stream lacks after its writer died.
#[derive(Debug, Default)]
pub struct Alignment {
    /// Open attempts whose outcome is in the log.
    pub settled: Vec<Attempt>,
    /// Open attempts whose outcome never will be.
    pub discarded: Vec<Attempt>,
    /// What no attempt has shown, since the last mark.
    pub boundaries: Vec<Chunk>,
}

/// What the stream lacks of the log up to `version`. A stream that knows nothing of the session is
/// told of the last run only, if that did not end: what happened before is for the log to tell.
///
/// # Errors
/// The store's and the stream manager's.
pub async fn alignment(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    clock: &dyn Clock,
    session: &Session,
    version: u64,
) -> Result<Alignment> {
    let info = streams.info(session.root()).await?;
    let mut found = Alignment::default();
    let marked = info.marked_by(session.id());
    for open in info.open.into_iter().filter(|open| open.session == *session.id()) {
        let recorded = session.has_outcome(&open.effect);
        if recorded { &mut found.settled } else { &mut found.discarded }.push(open.attempt);
    }
    if marked < version {
        let events = load_events(store, session.id(), 0).await?;
        let finishes = |step: u32| -> Vec<&ToolFinish> {
            let all = events.iter().filter_map(|recorded| match &recorded.event {
                Event::ToolFinished(finish) => Some(&**finish),
                _ => None,
            });
            all.filter(|finish| finish.call.step() == Some(step)).collect()
        };
        let shown = match marked {
            0 => before_unended_run(&events, version).unwrap_or(version),
            marked => marked,
        };
        for recorded in &events {
            if recorded.seq > shown && recorded.seq <= version {
                let mut kinds = Vec::new();
                of_event(session, recorded.seq, &recorded.event, &finishes, &mut kinds);
                let run = recorded.run.as_ref();
                let chunks = kinds.into_iter().map(|kind| chunk(clock, session, run, kind));
                found.boundaries.extend(chunks);
            }
        }
    }
    Ok(found)
}

/// Where the last run up to `version` began, if it has not ended by then; or where the session was
/// forked, if no run has begun since.
fn before_unended_run(events: &[RecordedEvent], version: u64) -> Option<u64> {
    let last = events.iter().rev().filter(|recorded| recorded.seq <= version).find(|recorded| {
        let event = &recorded.event;
        matches!(event, Event::RunStarted { .. } | Event::RunEnded { .. } | Event::Forked { .. })
    })?;
    (!matches!(last.event, Event::RunEnded { .. })).then_some(last.seq - 1)
}

/// Brings the stream of a session without a current run into line: its writer may have died right
/// after the last append.
///
/// # Errors
/// The store's and the stream manager's.
pub async fn align_ended(
    store: &dyn StateStore,
    streams: &dyn StreamManager,
    clock: &dyn Clock,
    session: &SessionId,
) -> Result<()> {
    let head = store.head(session).await?;
    let Some(head) = head.filter(|head| head.summary.run.is_none()) else { return Ok(()) };
    let stream = &head.created.root;
    let info = streams.info(stream).await?;
    let open = info.open.iter().any(|open| open.session == *session);
    if info.marked_by(session) >= head.position.version && !open {
        return Ok(());
    }
    let fold = load(store, session).await?;
    let version = fold.position().version;
    let Alignment { settled, discarded, boundaries } =
        alignment(store, streams, clock, &fold, version).await?;
    let origin = chunk(clock, &fold, None, ChunkKind::Checkpoint { version });
    streams.mark(stream, Mark { version, settled, discarded, origin, boundaries }).await
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
