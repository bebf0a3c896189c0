//! What people are shown of the log itself: the chunks that no attempt has shown, and bringing a
//! stream into line with the log after a crash.

use std::sync::Arc;

use helix_agents_core::clock::Clock;
use helix_agents_core::error::Result;
use helix_agents_core::event::{Event, RunOutcome, ToolFinish, Trigger};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::{Session, load, load_events};
use helix_agents_core::stream::{Attempt, Chunk, ChunkKind, Mark};
use helix_agents_core::tool::FINISH_TOOL;

use crate::parts::Parts;
use crate::tools::end_chunks;

/// Events of the present run, given the version after the last of them, as people are shown them.
pub(crate) fn boundaries(session: &Session, events: &[Event], version: u64) -> Vec<ChunkKind> {
    let first = version.saturating_sub(events.len() as u64) + 1;
    let finishes = |step: u32| -> Vec<&ToolFinish> {
        let closed = session.closed_step().filter(|closed| closed.reply.step == step);
        let calls = closed.map_or(&[][..], |closed| &closed.calls);
        calls.iter().filter_map(|call| call.finish.as_deref()).collect()
    };
    let events = (first..).zip(events);
    events.flat_map(|(seq, event)| of_event(session, seq, event, &finishes)).collect()
}

/// `finishes` gives the results of a step, in any order.
fn of_event<'a>(
    session: &Session,
    seq: u64,
    event: &Event,
    finishes: &impl Fn(u32) -> Vec<&'a ToolFinish>,
) -> Vec<ChunkKind> {
    let mut chunks = Vec::new();
    match event {
        Event::RunStarted { trigger: Trigger::Execute | Trigger::Continue, .. } => {
            chunks.push(ChunkKind::RunStarted);
        }
        Event::RunStarted { .. } => chunks.push(ChunkKind::RunResumed),
        Event::ToolFinished(finish) => {
            if finish.attempts == 0
                && let Some(call) = session.tool_call(&finish.call)
                && call.name != FINISH_TOOL
            {
                chunks.extend(end_chunks(call, &finish.outcome));
            }
        }
        Event::StateChanged { patch, .. } => {
            chunks.push(ChunkKind::StatePatch { patch: patch.clone() });
        }
        Event::StepClosed { step } => {
            chunks.extend(state_patches(finishes(*step)));
            chunks.push(ChunkKind::Checkpoint { version: seq });
        }
        Event::RunEnded { outcome } => chunks.extend(end_of_run(outcome)),
        _ => {}
    }
    chunks
}

/// What the calls of a step changed of the state, in the order in which the fold takes it in.
fn state_patches(mut finishes: Vec<&ToolFinish>) -> impl Iterator<Item = ChunkKind> {
    finishes.sort_by_key(|finish| (finish.finish.is_some(), finish.call.index()));
    let patches = finishes.into_iter().map(|finish| finish.state_patch.clone());
    patches.filter(|patch| !patch.is_empty()).map(|patch| ChunkKind::StatePatch { patch })
}

fn end_of_run(outcome: &RunOutcome) -> Vec<ChunkKind> {
    let ended = |status: &str| ChunkKind::RunEnded { status: status.to_owned() };
    match outcome {
        RunOutcome::Completed { output } => {
            let output = output.as_ref().map(|output| output.text().to_owned());
            let output = output.map(|output| ChunkKind::Output { output });
            output.into_iter().chain([ended("completed")]).collect()
        }
        RunOutcome::Failed { error } => {
            vec![ChunkKind::Error { error: error.clone() }, ended("failed")]
        }
        RunOutcome::Interrupted { reason } => {
            vec![ChunkKind::RunInterrupted { reason: reason.clone() }]
        }
        _ => vec![ended("aborted")],
    }
}

/// What a stream lacks after its writer died.
#[derive(Debug, Default)]
pub(crate) struct Alignment {
    pub(crate) settled: Vec<Attempt>,
    pub(crate) discarded: Vec<Attempt>,
    pub(crate) boundaries: Vec<Chunk>,
}

/// What the stream lacks of the log up to `version`. A stream that cannot be read costs what
/// people see, never the run.
pub(crate) async fn alignment(parts: &Parts, session: &Session, version: u64) -> Alignment {
    let found = find(parts, session, version).await;
    found.unwrap_or_else(|error| {
        tracing::warn!(session = %session.id(), %error, "the stream was not brought into line");
        Alignment::default()
    })
}

async fn find(parts: &Parts, session: &Session, version: u64) -> Result<Alignment> {
    let info = parts.streams.info(session.id()).await?;
    let mut found = Alignment::default();
    for open in info.open {
        let recorded = session.has_outcome(&open.effect);
        if recorded { &mut found.settled } else { &mut found.discarded }.push(open.attempt);
    }
    if info.marked < version {
        let events = load_events(&*parts.store, session.id(), 0).await?;
        let finishes = |step: u32| -> Vec<&ToolFinish> {
            let all = events.iter().filter_map(|recorded| match &recorded.event {
                Event::ToolFinished(finish) => Some(finish),
                _ => None,
            });
            all.filter(|finish| finish.call.step() == Some(step)).collect()
        };
        for recorded in &events {
            if recorded.seq > info.marked && recorded.seq <= version {
                let kinds = of_event(session, recorded.seq, &recorded.event, &finishes);
                let run = recorded.run.as_ref();
                let chunks = kinds.into_iter().map(|kind| chunk(parts, session, run, kind));
                found.boundaries.extend(chunks);
            }
        }
    }
    Ok(found)
}

/// Brings the stream of a session without a current run into line: its writer may have died right
/// after the last append.
pub(crate) async fn align_ended(parts: &Parts, session: &SessionId) -> Result<()> {
    let info = parts.streams.info(session).await?;
    let head = parts.store.head(session).await?;
    let Some(head) = head.filter(|head| head.summary.run.is_none()) else { return Ok(()) };
    if info.marked >= head.position.version && info.open.is_empty() {
        return Ok(());
    }
    let fold = load(&*parts.store, session).await?;
    let version = fold.position().version;
    let Alignment { settled, discarded, boundaries } = find(parts, &fold, version).await?;
    let origin = chunk(parts, &fold, None, ChunkKind::Checkpoint { version });
    parts.streams.mark(session, Mark { version, settled, discarded, origin, boundaries }).await
}

fn chunk(parts: &Parts, session: &Session, run: Option<&RunId>, kind: ChunkKind) -> Chunk {
    let last = session.last_run().map(|run| &run.id);
    Chunk {
        agent: Arc::clone(session.agent()),
        session: session.id().clone(),
        run: run.or(last).cloned().unwrap_or_else(|| RunId::from("")),
        step: session.last_step(),
        at: Clock::now(&*parts.clock),
        kind,
    }
}
