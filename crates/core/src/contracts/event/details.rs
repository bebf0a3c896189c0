//! Descriptions of events for users.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::{
    Answer, Event, ModelReply, PendingCall, RunOutcome, Suspension, ToolFinish, ToolOutcome,
};
use crate::clock::short_duration;

impl Event {
    /// Returns the details of the event, without its name, for users with access to the session. They
    /// repeat the content of the conversation, so they do not belong in a process log.
    #[must_use]
    pub fn details(&self) -> String {
        match self {
            Self::SessionCreated { agent, .. } => agent.to_string(),
            Self::RunStarted { run, trigger, runtime, .. } => {
                format!("{run} {} on {runtime}", word(trigger))
            }
            Self::RunEnded { outcome } => match outcome {
                RunOutcome::Completed { output } => {
                    let output = output.as_ref().map_or("", |output| output.text());
                    format!("completed {output}")
                }
                RunOutcome::Failed { error } => {
                    format!("failed {}: {}", error.code, error.in_full())
                }
                RunOutcome::Interrupted { reason } => {
                    format!("interrupted {}", text_of(reason.as_ref()))
                }
                RunOutcome::Aborted { reason } => format!("aborted {}", text_of(reason.as_ref())),
                RunOutcome::Suspended { on } => suspension_details(on),
            },
            Self::Submitted { call, answer, by, .. } => {
                let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
                format!("{call} {}{by}", answer_details(answer)).trim_end().to_owned()
            }
            Self::MessageQueued { message, .. } => message.content.clone(),
            Self::MessagesTaken { requests } => messages(requests.len()),
            Self::UserMessages { messages } => {
                let texts: Vec<_> =
                    messages.iter().map(|message| message.content.as_str()).collect();
                texts.join(" / ")
            }
            Self::ModelReplied(reply) => reply_details(reply),
            Self::CorrectionSent { message, .. } => message.content.clone(),
            Self::HistoryHealed { results } => format!("{} calls", results.len()),
            Self::ChildStarted(child) => {
                format!("{} {} as {}", child.call, child.agent, child.session)
            }
            Self::ChildWaiting { call } => call.to_string(),
            Self::ToolStarted { call, attempt, .. } => format!("{call} attempt {attempt}"),
            Self::WorkItemRepeated { call } => {
                call.as_ref().map(ToString::to_string).unwrap_or_default()
            }
            Self::ToolFinished(finish) => finish_details(finish),
            Self::InterruptRequested { reason, .. } | Self::AbortRequested { reason, .. } => {
                text_of(reason.as_ref())
            }
            Self::StateChanged { by, .. } => format!("by {by}"),
            Self::UsageRecorded { source_type, source_name, amount, .. } => {
                format!("{source_type} {source_name} {amount}")
            }
            Self::StepClosed { step } => step.to_string(),
            Self::Forked { from, at, .. } => format!("from {from} at {at}"),
            Self::Rewound { to } => format!("to {to}"),
        }
    }
}

fn messages(number: usize) -> String {
    format!("{number} message{}", if number == 1 { "" } else { "s" })
}

fn reply_details(reply: &ModelReply) -> String {
    let took = short_duration(Duration::from_millis(reply.took_ms));
    let mut text = format!("step {} ({took})", reply.step);
    if let Some(error) = &reply.error {
        text.push_str(&format!(" {}: {}", error.code, error.in_full()));
    }
    let Some(message) = &reply.message else { return text };
    for call in &message.tool_calls {
        let arguments = call.arguments.as_json().map_or("…", |arguments| arguments.text());
        text.push_str(&format!(" {}={}{arguments}", call.id, call.name));
    }
    if let Some(content) = &message.content {
        text.push_str(&format!(" {content}"));
    }
    text
}

fn finish_details(finish: &ToolFinish) -> String {
    let took = short_duration(Duration::from_millis(finish.took_ms));
    let outcome = match &finish.outcome {
        ToolOutcome::Success(result) => result.text().to_owned(),
        ToolOutcome::Error(error) => error.to_string(),
        ToolOutcome::Acknowledged => return format!("{} acknowledged", finish.call),
    };
    if finish.attempts == 0 {
        // A sub-agent or a client executed the call, or it was not executed.
        return format!("{} {outcome}", finish.call);
    }
    format!("{} attempt {} ({took}) {outcome}", finish.call, finish.attempts)
}

fn suspension_details(on: &Suspension) -> String {
    let describe = |pending: &Arc<PendingCall>| {
        let until = pending.deadline.map_or_else(String::new, |at| format!(" until {at}"));
        format!("{} {}{until}", pending.call, pending.tool)
    };
    let calls: Vec<_> = on.calls.iter().map(describe).collect();
    format!("suspended, waits for {}", calls.join(", "))
}

fn answer_details(answer: &Answer) -> String {
    match answer {
        Answer::Returned(result) => format!("result {}", result.text()),
        Answer::Error(message) => format!("error {message}"),
        Answer::Approved { edited: None } => "approved".to_owned(),
        Answer::Approved { edited: Some(edited) } => format!("approved as {}", edited.text()),
        Answer::Denied { reason } => {
            format!("denied {}", text_of(reason.as_ref())).trim_end().into()
        }
    }
}

fn text_of(reason: Option<&String>) -> String {
    reason.cloned().unwrap_or_default()
}

/// The serialized name of a unit enum variant.
fn word<T: Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
