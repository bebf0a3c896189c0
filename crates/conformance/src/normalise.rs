//! Logs and streams as normalised text, for comparing two executions of the same scenario.
//!
//! The text omits ids and times, sorts the results of a step by call order, and joins deltas per effect. It
//! shows neither takeovers nor discarded attempts. It still shows swapped, lost and duplicated data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use helix_agents_core::error::ErrorRecord;
use helix_agents_core::event::{
    Answer, Event, FinishOutput, ModelReply, RecordedEvent, RunOutcome, ToolFinish, ToolOutcome,
    Trigger,
};
use helix_agents_core::message::{
    Arguments, AssistantMessage, Message, ReplyPart, SharedMessage, ToolCall, UserMessage,
};
use helix_agents_core::session::WAIT_USAGE;
use helix_agents_core::stream::{Attempt, ChunkKind, StoredChunk};
use helix_agents_core::usage::Usage;
use serde::Serialize;

/// Returns a session log as text. Events that depend on timing are omitted, and the results of a step are in
/// call order.
#[must_use]
pub fn log(events: &[RecordedEvent]) -> String {
    let mut out = String::new();
    let mut results: BTreeMap<(u32, u32), Vec<String>> = BTreeMap::new();
    for recorded in events {
        let event = &recorded.event;
        if let Event::ToolFinished(finish) = event {
            results.entry(place(finish.call.as_str())).or_default().push(result(finish));
            continue;
        }
        if matches!(
            event,
            Event::StepClosed { .. } | Event::CorrectionSent { .. } | Event::Rewound { .. }
        ) {
            for line in std::mem::take(&mut results).into_values().flatten() {
                out.push_str(&line);
            }
        }
        out.push_str(&line(event));
    }
    for line in results.into_values().flatten() {
        out.push_str(&line);
    }
    out
}

fn place(call: &str) -> (u32, u32) {
    let (step, index) = call.split_once('.').unwrap_or((call, "0"));
    (step.parse().unwrap_or(0), index.parse().unwrap_or(0))
}

fn line(event: &Event) -> String {
    match event {
        Event::SessionCreated { agent, state, parent, .. } => {
            let below = parent.as_ref().map_or_else(String::new, |parent| {
                format!(" below {} for {}", parent.session, parent.call)
            });
            format!("session {agent} state={}{below}\n", state.text())
        }
        Event::ChildStarted(start) => {
            format!("child {} of {} for {}\n", start.session, start.agent, start.call)
        }
        // The end of the run shows that a child is waiting. How often it was polled depends on timing.
        Event::ChildWaiting { .. } => String::new(),
        // Takeovers depend on timing and crashes.
        Event::RunStarted { trigger: Trigger::Recover, .. } => String::new(),
        Event::RunStarted { trigger, .. } => format!("run {trigger:?}\n"),
        Event::RunEnded { outcome } => format!("end {}\n", outcome_text(outcome)),
        Event::UserMessages { messages } => {
            messages.iter().map(|message| user_text("user", message)).collect()
        }
        Event::ModelReplied(reply) => reply_text(reply),
        Event::CorrectionSent { step, message } => {
            format!("step {step} correction {:?}\n", message.content)
        }
        Event::HistoryHealed { results } => {
            let healed = results.iter();
            healed.map(|(call, got)| format!("healed {call} {}\n", tool_outcome(got))).collect()
        }
        // Whether a start is recorded depends on the run that executed the call. The trace shows that the
        // call acted once.
        Event::ToolStarted { .. } | Event::WorkItemRepeated { .. } => String::new(),
        Event::InterruptRequested { reason, .. } => format!("interrupt requested {reason:?}\n"),
        Event::AbortRequested { reason, .. } => format!("abort requested {reason:?}\n"),
        Event::StateChanged { patch, by } => {
            format!("state by {by} {}\n", serde_json::to_string(patch).unwrap_or_default())
        }
        // The waiting time depends on timing.
        Event::UsageRecorded { source_type, source_name, success, .. }
            if source_type == WAIT_USAGE =>
        {
            format!("usage {source_type} {source_name} success={success}\n")
        }
        Event::UsageRecorded { source_type, source_name, amount, success, .. } => {
            let failed = if *success { "" } else { " success=false" };
            format!("usage {source_type} {source_name} {amount}{failed}\n")
        }
        Event::Submitted { call, answer, .. } => {
            format!("submitted {call} {}\n", answer_text(answer))
        }
        Event::MessageQueued { message, .. } => user_text("queued", message),
        Event::MessagesTaken { requests } => format!("took {} messages\n", requests.len()),
        Event::StepClosed { step } => format!("step {step} closed\n"),
        Event::Forked { from, .. } => format!("forked from {from}\n"),
        Event::Rewound { .. } => "went back\n".to_owned(),
        other => format!("{}\n", other.name()),
    }
}

fn reply_text(reply: &ModelReply) -> String {
    let mut out = format!("step {} reply", reply.step);
    if let Some(error) = &reply.error {
        write!(out, " error={} should_stop={}", error_text(error), reply.should_stop)
            .unwrap_or_default();
    }
    if let Some(output) = &reply.output {
        write!(out, " output={}", output.text()).unwrap_or_default();
    }
    if let Some(reason) = reply.stop_reason {
        write!(out, " {reason:?}").unwrap_or_default();
    }
    write!(out, " {}", usage_text(&reply.usage)).unwrap_or_default();
    if let Some(message) = &reply.message {
        if let Some(thinking) = &message.thinking {
            write!(out, " thinking={:?}", thinking.content).unwrap_or_default();
        }
        if let Some(content) = &message.content {
            write!(out, " {content:?}").unwrap_or_default();
        }
        for call in &message.tool_calls {
            write!(out, "\n  call {} {}({})", call.id, call.name, arguments(&call.arguments))
                .unwrap_or_default();
        }
    }
    out.push('\n');
    for attempt in &reply.failed_attempts {
        writeln!(out, "  failed attempt {} {}", attempt.code, usage_text(&attempt.usage))
            .unwrap_or_default();
    }
    out + &reply.message.as_deref().map(layout_text).unwrap_or_default()
}

fn usage_text(usage: &Usage) -> String {
    let mut out = format!("in={} out={}", usage.input_tokens, usage.output_tokens);
    if usage.cache_write_tokens > 0 {
        write!(out, " cache_write={}", usage.cache_write_tokens).unwrap_or_default();
    }
    out
}

/// Returns the layout of a reply, one line per part, with the exact data of the provider. Returns an empty text for a
/// reply without a layout.
fn layout_text(message: &AssistantMessage) -> String {
    let Some(layout) = &message.layout else { return String::new() };
    let mut out = format!("  layout of {} {}\n", layout.provider, layout.model);
    for part in message.parts() {
        let (text, data) = match part {
            ReplyPart::Thinking { text, data } => (format!("thinking {text:?}"), data),
            ReplyPart::Text { text, data } => (format!("text {text:?}"), data),
            ReplyPart::Call { call, data } => (format!("call {}", call.name), data),
            ReplyPart::Opaque { data } => ("opaque".to_owned(), Some(data)),
            other => (format!("{other:?}"), None),
        };
        let data = data.map(|data| format!(" {}", data.text())).unwrap_or_default();
        writeln!(out, "  part {text}{data}").unwrap_or_default();
    }
    out
}

/// Returns the text of a message and its files.
fn user_text(what: &str, message: &UserMessage) -> String {
    format!("{what} {:?}\n{}", message.content, files_text(&message.attachments))
}

/// Returns files, one line each.
fn files_text(files: &[impl Serialize]) -> String {
    let files = files.iter().map(|file| serde_json::to_string(file).unwrap_or_default());
    files.map(|file| format!("  file {file}\n")).collect()
}

fn arguments(arguments: &Arguments) -> &str {
    match arguments {
        Arguments::Json(json) => json.text(),
        Arguments::Malformed(text) => text,
    }
}

fn result(finish: &ToolFinish) -> String {
    let mut out = format!("  result {} {}", finish.call, tool_outcome(&finish.outcome));
    match &finish.finish {
        Some(FinishOutput::Output(output)) => {
            write!(out, " finishes {}", output.text()).unwrap_or_default();
        }
        Some(FinishOutput::Invalid(error)) => {
            write!(out, " fails the turn: {}", error_text(error)).unwrap_or_default();
        }
        None => {}
    }
    if !finish.state_patch.is_empty() {
        let patch = serde_json::to_string(&finish.state_patch).unwrap_or_default();
        write!(out, " state={patch}").unwrap_or_default();
    }
    if let Some(used) = &finish.child {
        let (tokens, steps, calls) = (used.tokens, used.steps, used.tool_calls);
        let (input, output) = (tokens.input_tokens, tokens.output_tokens);
        write!(out, " used in={input} out={output} steps={steps} calls={calls}")
            .unwrap_or_default();
    }
    out.push('\n');
    out + &files_text(&finish.attachments)
}

fn tool_outcome(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Success(result) => result.text().to_owned(),
        ToolOutcome::Error(error) => format!("error {}", error_text(error)),
        ToolOutcome::Acknowledged => "acknowledged".to_owned(),
    }
}

/// Returns an error as the log contains it.
fn error_text(error: &ErrorRecord) -> String {
    format!("{}: {}", error.code, error.in_full())
}

fn outcome_text(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Completed { output: Some(output) } => format!("completed {}", output.text()),
        RunOutcome::Completed { output: None } => "completed".to_owned(),
        RunOutcome::Failed { error } => format!("failed {}", error_text(error)),
        RunOutcome::Interrupted { reason } => format!("interrupted {reason:?}"),
        RunOutcome::Aborted { reason } => format!("aborted {reason:?}"),
        RunOutcome::Suspended { on } => {
            let calls = on.calls.iter().map(|pending| {
                let deadline = if pending.deadline.is_some() { " with a deadline" } else { "" };
                format!(" {} {} {:?}{deadline}", pending.call, pending.tool, pending.kind)
            });
            let below = on.children.iter().map(|child| format!(" below {}", child.call));
            format!("suspended{}{}", calls.collect::<String>(), below.collect::<String>())
        }
        other => format!("{other:?}"),
    }
}

fn answer_text(answer: &Answer) -> String {
    match answer {
        Answer::Returned(result) => format!("result {}", result.text()),
        Answer::Approved { edited: Some(edited) } => format!("approved as {}", edited.text()),
        Answer::Approved { edited: None } => "approved".to_owned(),
        Answer::Denied { reason } => format!("denied {reason:?}"),
        Answer::Error(message) => format!("error {message}"),
        other => format!("{other:?}"),
    }
}

/// Returns a transcript as text: one line per message, and one line for each of its files and for each part of a reply
/// with a layout.
#[must_use]
pub fn transcript(messages: &[SharedMessage]) -> String {
    messages.iter().map(|message| message_text(message)).collect()
}

fn message_text(message: &Message) -> String {
    match message {
        Message::System { content } => format!("system {content:?}\n"),
        Message::User(user) => user_text("user", user),
        Message::Assistant(assistant) => {
            let call = |call: &ToolCall| format!(" {}({})", call.name, arguments(&call.arguments));
            let calls: String = assistant.tool_calls.iter().map(call).collect();
            format!("assistant {:?}{calls}\n{}", assistant.content, layout_text(assistant))
        }
        Message::Tool(result) => {
            let files = files_text(&result.attachments);
            format!("tool {} {}\n{files}", result.tool_name, result.content)
        }
    }
}

/// Lines that belong together: the attempt, its place (step and call), and the lines.
type Group = (Option<Attempt>, (u32, u32), Vec<String>);

/// Returns a stream as text: what a user has seen of it in the end, effect by effect.
#[must_use]
pub fn stream(chunks: &[StoredChunk]) -> String {
    let mut discarded: BTreeSet<Attempt> = BTreeSet::new();
    for stored in chunks {
        if let ChunkKind::StepDiscarded { attempts } = &stored.chunk.kind {
            discarded.extend(attempts);
        }
    }
    // The ids of sessions below the root begin with the root's id. Any session may write first.
    let sessions = chunks.iter().map(|stored| &stored.chunk.session);
    let root = sessions.min_by_key(|session| session.as_str().len());
    // Chunks of an attempt are grouped where the attempt starts. Boundaries keep their places among the
    // groups of other steps.
    let mut groups: Vec<Group> = Vec::new();
    for stored in chunks {
        if stored.attempt.is_some_and(|attempt| discarded.contains(&attempt)) {
            continue;
        }
        let Some(text) = chunk_text(&stored.chunk.kind) else { continue };
        let text = match root {
            Some(root) if *root != stored.chunk.session => {
                format!("[{}] {text}", stored.chunk.agent)
            }
            _ => text,
        };
        let own = groups
            .iter_mut()
            .rev()
            .find(|group| group.0 == stored.attempt && stored.attempt.is_some());
        match own {
            Some((_, _, lines)) => push_joined(lines, text),
            None => {
                let place = call_of(&stored.chunk.kind).unwrap_or((stored.chunk.step, 0));
                groups.push((stored.attempt, place, vec![text]));
            }
        }
    }
    sort_neighbours(&mut groups);
    groups.into_iter().flat_map(|(_, _, lines)| lines).map(|line| line + "\n").collect()
}

/// Sorts adjacent groups of tools by call order, because the tools of one step run concurrently.
fn sort_neighbours(groups: &mut [Group]) {
    let is_tool = |group: &Group| {
        group.0.is_some() && group.2.first().is_some_and(|line| line.starts_with("tool_start"))
    };
    for run in groups.chunk_by_mut(|left, right| is_tool(left) && is_tool(right)) {
        run.sort_by_key(|group| group.1);
    }
}

fn push_joined(lines: &mut Vec<String>, text: String) {
    for prefix in ["text ", "thinking ", "args "] {
        if let (Some(last), Some(more)) = (lines.last_mut(), text.strip_prefix(prefix))
            && last.starts_with(prefix)
        {
            last.push_str(more);
            return;
        }
    }
    lines.push(text);
}

fn call_of(kind: &ChunkKind) -> Option<(u32, u32)> {
    match kind {
        ChunkKind::ToolStart { call, .. } => Some(place(call.as_str())),
        _ => None,
    }
}

fn chunk_text(kind: &ChunkKind) -> Option<String> {
    Some(match kind {
        ChunkKind::TextDelta { delta } => format!("text {delta}"),
        ChunkKind::Thinking { content, .. } => format!("thinking {content}"),
        ChunkKind::ToolArgStart { index, tool } => format!("tool_arg {index} {tool}"),
        ChunkKind::ToolArgDelta { delta, .. } => format!("args {delta}"),
        ChunkKind::ToolStart { call, tool, arguments, .. } => {
            format!("tool_start {call} {tool} {arguments}")
        }
        ChunkKind::ToolProgress { call, message, .. } => format!("progress {call} {message}"),
        ChunkKind::ToolEnd { call, success, result, .. } => {
            let result = result.as_deref().map(|result| format!(" {result}")).unwrap_or_default();
            format!("tool_end {call} success={success}{result}")
        }
        ChunkKind::ToolError { call, error, .. } => {
            format!("tool_error {call} {}", error_text(error))
        }
        ChunkKind::Custom { name, data } => format!("custom {name} {data}"),
        ChunkKind::StatePatch { patch } => {
            format!("state_patch {}", serde_json::to_string(patch).unwrap_or_default())
        }
        ChunkKind::Checkpoint { .. } => "checkpoint".to_owned(),
        ChunkKind::Output { output } => format!("output {output}"),
        ChunkKind::Error { error } => format!("error {}", error_text(error)),
        ChunkKind::RunStarted { .. } => "run_started".to_owned(),
        ChunkKind::RunEnded { status, .. } => format!("run_ended {status}"),
        ChunkKind::RunInterrupted { reason } => format!("run_interrupted {reason:?}"),
        ChunkKind::RunSuspended { calls, .. } => {
            let calls: Vec<_> = calls.iter().map(|call| call.as_str()).collect();
            format!("run_suspended {}", calls.join(" ")).trim_end().to_owned()
        }
        ChunkKind::SubagentStart { call, subagent, .. } => {
            format!("subagent_start {call} {subagent}")
        }
        ChunkKind::SubagentEnd { call, subagent, success, .. } => {
            format!("subagent_end {call} {subagent} success={success}")
        }
        ChunkKind::ToolApprovalRequest { call, tool, arguments, editable, .. } => {
            let editable = if *editable { " editable" } else { "" };
            format!("approval_request {call} {tool} {arguments}{editable}")
        }
        // Takeovers and forgotten chunks depend on timing and crashes.
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
