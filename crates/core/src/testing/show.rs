//! Logs, transcripts and actions as text, one line each.

use std::fmt::Write as _;

use super::Entry;
use crate::event::{
    Event, FinishOutput, ModelReply, RunOutcome, Suspension, ToolFinish, ToolOutcome,
};
use crate::message::{Arguments, Message, SharedMessage, ToolCall};
use crate::step::{Action, CallTask};

/// Formats a log with one line per event.
pub(crate) fn log_text(log: &[Entry]) -> String {
    let mut text = String::new();
    for (_, event) in log {
        writeln!(text, "{}", event_text(event)).unwrap();
    }
    text
}

fn event_text(event: &Event) -> String {
    match event {
        Event::SessionCreated { agent, .. } => format!("created for {agent}"),
        Event::RunStarted { run, trigger, .. } => format!("{run} started: {trigger:?}"),
        Event::RunEnded { outcome } => format!("ended {}", outcome_text(outcome)),
        Event::UserMessages { messages } => {
            let texts: Vec<_> = messages.iter().map(|message| &message.content).collect();
            format!("user {texts:?}")
        }
        Event::ModelReplied(reply) => format!("reply {}: {}", reply.step, reply_text(reply)),
        Event::CorrectionSent { step, message } => {
            format!("correction {step}: {}", message.content)
        }
        Event::HistoryHealed { results } => {
            let results =
                results.iter().map(|(call, outcome)| format!("{call} {}", result(outcome)));
            format!("healed {}", results.collect::<Vec<_>>().join(", "))
        }
        Event::ChildStarted(start) => {
            format!("began {} of {} for {}", start.session, start.agent, start.call)
        }
        Event::ChildWaiting { call } => format!("the child of {call} waits"),
        Event::ToolStarted { call, attempt, .. } => format!("started {call}, try {attempt}"),
        Event::WorkItemRepeated { call: Some(call) } => format!("tried {call} again"),
        Event::WorkItemRepeated { call: None } => "tried again".to_owned(),
        Event::ToolFinished(finish) => finish_text(finish),
        Event::InterruptRequested { .. } => "interrupt requested".to_owned(),
        Event::AbortRequested { .. } => "abort requested".to_owned(),
        Event::StateChanged { patch, by } => format!("state changed by {by}: {}", json(patch)),
        Event::Submitted { call, answer, .. } => format!("submitted {call}: {answer:?}"),
        Event::MessageQueued { message, .. } => format!("queued {:?}", message.content),
        Event::MessagesTaken { requests } => format!("took {} messages", requests.len()),
        Event::UsageRecorded { source_type, source_name, amount, .. } => {
            format!("used {amount} of {source_type} {source_name}")
        }
        Event::StepClosed { step } => format!("closed {step}"),
        Event::Forked { from, at, .. } => format!("forked from {from} at {at}"),
        Event::Rewound { to } => format!("went back to {to}"),
    }
}

fn outcome_text(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Completed { output: Some(output) } => format!("completed: {output:?}"),
        RunOutcome::Completed { output: None } => "completed without output".to_owned(),
        RunOutcome::Failed { error } => format!("failed: {}: {}", error.code, error.in_full()),
        RunOutcome::Interrupted { reason } => format!("interrupted: {reason:?}"),
        RunOutcome::Aborted { reason } => format!("aborted: {reason:?}"),
        RunOutcome::Suspended { on } => suspended(on),
    }
}

fn suspended(on: &Suspension) -> String {
    let calls = on.calls.iter().map(|pending| {
        let until =
            pending.deadline.map_or_else(String::new, |deadline| format!(" until {}", deadline.0));
        format!(" {} {} {:?}{until}", pending.call, pending.tool, pending.kind)
    });
    format!("suspended on{}", calls.collect::<Vec<_>>().join(","))
}

fn reply_text(reply: &ModelReply) -> String {
    if let Some(error) = &reply.error {
        return format!("error {}", error.code);
    }
    if let Some(output) = &reply.output {
        return format!("output {output:?}");
    }
    let message = reply.message.as_deref().unwrap();
    let mut parts: Vec<_> = message.content.iter().map(|content| format!("{content:?}")).collect();
    parts.extend(message.tool_calls.iter().map(call_text));
    parts.join(", ")
}

fn call_text(call: &ToolCall) -> String {
    let arguments = match &call.arguments {
        Arguments::Json(json) => json.text(),
        Arguments::Malformed(text) => text,
    };
    format!("{} {}({arguments})", call.id, call.name)
}

fn finish_text(finish: &ToolFinish) -> String {
    let mut text = format!("finished {}: {}", finish.call, result(&finish.outcome));
    match &finish.finish {
        Some(FinishOutput::Output(output)) => write!(text, "; output {output:?}").unwrap(),
        Some(FinishOutput::Invalid(error)) => {
            write!(text, "; invalid {}: {}", error.code, error.in_full()).unwrap()
        }
        None => {}
    }
    if !finish.state_patch.is_empty() {
        write!(text, "; patch {}", json(&finish.state_patch)).unwrap();
    }
    text
}

fn result(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Success(result) => format!("{result:?}"),
        ToolOutcome::Error(error) => format!("error {error}"),
        ToolOutcome::Acknowledged => "acknowledged".to_owned(),
    }
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

/// Formats a transcript with one line per message.
pub(crate) fn transcript_text(transcript: &[SharedMessage]) -> String {
    let mut text = String::new();
    for message in transcript {
        match &**message {
            Message::System { content } => writeln!(text, "system: {content}"),
            Message::User(user) => writeln!(text, "user: {}", user.content),
            Message::Assistant(assistant) => {
                let mut parts: Vec<_> =
                    assistant.content.iter().map(|content| format!("{content:?}")).collect();
                parts.extend(assistant.tool_calls.iter().map(call_text));
                writeln!(text, "assistant: {}", parts.join(", "))
            }
            Message::Tool(tool) => {
                writeln!(text, "tool: {} {} = {}", tool.tool_call_id, tool.tool_name, tool.content)
            }
        }
        .unwrap();
    }
    text
}

/// Formats an action on one line.
pub(crate) fn action_text(action: &Action) -> String {
    let tasks = |tasks: &[CallTask]| tasks.iter().map(task).collect::<Vec<_>>().join(", ");
    match action {
        Action::CallModel { step, force_completion: true } => format!("call model {step}, forced"),
        Action::CallModel { step, .. } => format!("call model {step}"),
        Action::RunTools { calls, children } if children.is_empty() => {
            format!("run {}", tasks(calls))
        }
        Action::RunFinishTool(one) => format!("run finish tool {}", task(one)),
        Action::End(outcome) => format!("end {}", outcome_text(outcome)),
        other => format!("{other:?}"),
    }
}

fn task(task: &CallTask) -> String {
    let how = match (task.at_most_once, task.in_doubt) {
        (true, true) => " in doubt",
        (true, false) => " at most once",
        (false, _) => "",
    };
    format!("{} try {}{how}", task.call, task.attempt)
}
