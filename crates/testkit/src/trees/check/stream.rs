//! Checks of the root's stream: it shows what the logs contain, once, and nothing that was discarded.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::StreamExt as _;
use helix_agents_core::event::{Event, RunOutcome, ToolOutcome, Trigger};
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{ChunkKind, StoredChunk, StreamManager};
use helix_agents_core::tool::FINISH_TOOL;

use super::{Expected, Member, Members};

pub(super) async fn check(
    streams: &dyn StreamManager,
    expected: &Expected,
    members: &Members,
    problems: &mut Vec<String>,
) -> Result<(), String> {
    // A new session clears the stream of a deleted one with the same id. It cannot if the stream is
    // unavailable.
    if expected.recreated && expected.gaps {
        return Ok(());
    }
    let chunks = read(streams, &expected.root).await?;
    problems.extend(in_order(&chunks));
    let mut shown: BTreeMap<&SessionId, Vec<&StoredChunk>> = BTreeMap::new();
    for stored in &chunks {
        shown.entry(&stored.chunk.session).or_default().push(stored);
    }
    for (id, member) in members {
        let shown = shown.get(id).map_or(&[][..], Vec::as_slice);
        let shown = match expected.recreated {
            true => without_leftovers(member, shown),
            false => shown,
        };
        problems.extend(as_in_the_log(member, expected, shown));
    }
    Ok(())
}

/// Returns the chunks after those of a deleted session with the same id. A process that was stopped during the deletion
/// may write to the stream until the new session does.
fn without_leftovers<'a>(member: &Member, shown: &'a [&StoredChunk]) -> &'a [&'a StoredChunk] {
    let is_own = |stored: &&StoredChunk| member.fold.run(&stored.chunk.run).is_some();
    let first = shown.iter().position(is_own).unwrap_or(shown.len());
    &shown[first..]
}

async fn read(streams: &dyn StreamManager, root: &SessionId) -> Result<Vec<StoredChunk>, String> {
    let text = |error: helix_agents_core::error::Error| error.to_string();
    let last = streams.info(root).await.map_err(text)?.last_seq;
    let mut reader = streams.read(root, 1).await.map_err(text)?;
    let mut chunks: Vec<StoredChunk> = Vec::new();
    while chunks.last().is_none_or(|stored| stored.seq < last) && last > 0 {
        let Some(stored) = reader.next().await else { break };
        chunks.push(stored.map_err(text)?);
    }
    Ok(chunks)
}

/// Checks that numbers rise, by one where nothing was discarded, and that no discarded chunk is shown.
fn in_order(chunks: &[StoredChunk]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut discarded = BTreeSet::new();
    for stored in chunks {
        if let ChunkKind::StepDiscarded { attempts } = &stored.chunk.kind {
            discarded.extend(attempts.iter().copied());
        }
    }
    for pair in chunks.windows(2) {
        let (one, next) = (pair[0].seq, pair[1].seq);
        if next <= one || (discarded.is_empty() && next != one + 1) {
            problems.push(format!("chunk {next} comes after {one}"));
        }
    }
    for stored in chunks {
        if stored.attempt.is_some_and(|attempt| discarded.contains(&attempt)) {
            problems.push(format!("{stored:?} was discarded"));
        }
    }
    problems
}

/// Checks that the boundaries have the order of the log, and that the results and texts of a session are
/// shown.
fn as_in_the_log(member: &Member, expected: &Expected, shown: &[&StoredChunk]) -> Vec<String> {
    let Expected { overlaps, gaps, .. } = expected;
    let id = member.fold.id();
    let mut problems = Vec::new();
    let is: Vec<_> = shown.iter().filter_map(|stored| boundary(&stored.chunk.kind)).collect();
    let log = member.own().iter();
    let mut should: Vec<_> =
        log.filter_map(|recorded| of_log(recorded.seq, &recorded.event)).collect();
    if member.forked_run_was_open() {
        should.insert(0, "interrupted".to_owned());
    }
    if !agree(&is, &should, *gaps) {
        problems.push(format!("{id}: the stream shows\n  {is:?}\nof\n  {should:?}"));
    }
    let mut is: Vec<_> = shown.iter().filter_map(|stored| result(&stored.chunk.kind)).collect();
    let mut should = results(member);
    is.sort();
    should.sort();
    if *overlaps || *gaps {
        // The execution whose result was not recorded may have been the last one to reach the stream.
        // If an engine executes a call twice concurrently, the log does not tell.
        let was_repeated = member.was_repeated() || member.was_taken_over();
        let may_differ = *overlaps || (*gaps && was_repeated);
        is.retain(|shown| should.contains(shown) || !may_differ);
    }
    if *overlaps {
        // If two executions showed the same effect, both or neither may be discarded.
        is.dedup();
        should.retain(|result| is.contains(result));
    }
    if !agree(&is, &should, *gaps) {
        problems.push(format!("{id}: the stream shows results\n  {is:?}\nof\n  {should:?}"));
    }
    let (mut is, mut should) = (texts(shown), said(member));
    // The text that a failed call delivered stays in the stream, and is in no transcript.
    is.retain(|step, _| !member.has(|event| failed(event, *step)));
    // A run or work item that could not reach the stream did not discard the chunks of an earlier one.
    if *overlaps || (*gaps && (member.was_taken_over() || member.was_repeated())) {
        is.clear();
        should.clear();
    }
    let same = if *gaps {
        is.iter().all(|(step, text)| should.get(step).is_some_and(|said| is_part(text, said)))
    } else {
        is == should
    };
    if !same {
        problems.push(format!("{id}: the stream shows texts\n  {is:?}\nof\n  {should:?}"));
    }
    problems
}

/// Returns `true` if the shown items equal the expected ones, or with gaps, if they are a subsequence of
/// them.
fn agree<T: PartialEq>(is: &[T], should: &[T], gaps: bool) -> bool {
    let mut rest = should.iter();
    if gaps { is.iter().all(|one| rest.any(|other| one == other)) } else { is == should }
}

/// Returns `true` if a text is another text with gaps.
fn is_part(text: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    text.chars().all(|one| rest.any(|other| one == other))
}

fn boundary(kind: &ChunkKind) -> Option<String> {
    Some(match kind {
        ChunkKind::RunStarted { .. } => "started".to_owned(),
        ChunkKind::RunResumed => "resumed".to_owned(),
        ChunkKind::RunEnded { status, .. } => status.clone(),
        ChunkKind::RunInterrupted { .. } => "interrupted".to_owned(),
        ChunkKind::RunSuspended { .. } => "suspended".to_owned(),
        ChunkKind::Checkpoint { version } => format!("checkpoint {version}"),
        _ => return None,
    })
}

fn of_log(seq: u64, event: &Event) -> Option<String> {
    Some(match event {
        Event::RunStarted { trigger: Trigger::Execute | Trigger::Continue, .. } => {
            "started".to_owned()
        }
        Event::RunStarted { .. } => "resumed".to_owned(),
        Event::StepClosed { .. } => format!("checkpoint {seq}"),
        Event::RunEnded { outcome } => match outcome {
            RunOutcome::Completed { .. } => "completed".to_owned(),
            RunOutcome::Failed { .. } => "failed".to_owned(),
            RunOutcome::Interrupted { .. } => "interrupted".to_owned(),
            RunOutcome::Suspended { .. } => "suspended".to_owned(),
            RunOutcome::Aborted { .. } => "aborted".to_owned(),
            other => format!("{other:?}"),
        },
        _ => return None,
    })
}

fn result(kind: &ChunkKind) -> Option<(String, bool, Option<String>)> {
    match kind {
        ChunkKind::ToolEnd { call, success, result, .. } => {
            Some((call.to_string(), *success, result.clone()))
        }
        _ => None,
    }
}

fn results(member: &Member) -> Vec<(String, bool, Option<String>)> {
    let shown = member.finishes().filter(|finish| {
        let tool = member.tool_of(&finish.call);
        tool.is_some_and(|tool| tool != FINISH_TOOL)
    });
    let results = shown.filter_map(|finish| match &finish.outcome {
        ToolOutcome::Success(result) => {
            Some((finish.call.to_string(), true, Some(result.text().to_owned())))
        }
        ToolOutcome::Error(_) => Some((finish.call.to_string(), false, None)),
        ToolOutcome::Acknowledged => None,
    });
    results.collect()
}

/// Returns the text of each step that has one.
fn texts(shown: &[&StoredChunk]) -> BTreeMap<u32, String> {
    let mut texts: BTreeMap<u32, String> = BTreeMap::new();
    for stored in shown {
        if let ChunkKind::TextDelta { delta } = &stored.chunk.kind {
            texts.entry(stored.chunk.step).or_default().push_str(delta);
        }
    }
    texts
}

fn failed(event: &Event, step: u32) -> bool {
    matches!(event, Event::ModelReplied(reply) if reply.step == step && reply.error.is_some())
}

fn said(member: &Member) -> BTreeMap<u32, String> {
    let mut texts = BTreeMap::new();
    for recorded in member.own() {
        let Event::ModelReplied(reply) = &recorded.event else { continue };
        let content = reply.message.as_ref().and_then(|message| message.content.clone());
        // Plans are JSON. The stream shows them in chunks of their own.
        let text = content.filter(|content| !content.is_empty() && !content.starts_with('{'));
        if let Some(content) = text {
            texts.insert(reply.step, content);
        }
    }
    texts
}
