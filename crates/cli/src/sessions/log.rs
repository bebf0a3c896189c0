//! `helix sessions log`.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use helix_agents::AnyStore;
use helix_agents::event::{
    Answer, Event, ModelReply, PendingCall, RecordedEvent, RunOutcome, Suspension, ToolFinish,
    ToolOutcome,
};
use helix_agents::id::SessionId;
use helix_agents::session::load_events;
use serde::Serialize;

use crate::screen::{Screen, Style};
use crate::storage::Which;
use crate::text::{count, duration, shortened};

/// The maximum length of a text. `--json` prints it in full.
const MAX_CHARS: usize = 120;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    which: Which,
    /// Only events after this one.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
}

/// Runs the command.
pub(crate) async fn run(args: &LogArgs, store: &AnyStore, screen: &Screen) -> Result<()> {
    let head = args.which.head(store).await?;
    show(&head.session, args.after, store, screen).await
}

/// Shows the events of a session after one of them.
pub(crate) async fn show(
    session: &SessionId,
    after: u64,
    store: &AnyStore,
    screen: &Screen,
) -> Result<()> {
    // The store can read only from the start of an append, so the events are filtered here.
    let events = load_events(store, session, 0).await?;
    for event in events.iter().filter(|event| event.seq > after) {
        if screen.is_json() {
            screen.json(event)?;
        } else {
            screen.line(describe(event, screen))?;
        }
        if screen.is_closed() {
            break;
        }
    }
    Ok(())
}

fn describe(event: &RecordedEvent, screen: &Screen) -> String {
    let at = screen.styled(Style::Dim, event.at);
    let name = screen.styled(Style::Bold, event.event.name());
    let details = shortened(&details(&event.event), MAX_CHARS);
    format!("{:>4}  {at}  {name} {details}", event.seq).trim_end().to_owned()
}

/// The details of an event that are shown after its name.
fn details(event: &Event) -> String {
    match event {
        Event::SessionCreated { agent, .. } => agent.to_string(),
        Event::RunStarted { run, trigger, runtime, .. } => {
            format!("{run} {} on {runtime}", word(trigger))
        }
        Event::RunEnded { outcome } => match outcome {
            RunOutcome::Completed { output } => {
                let output = output.as_ref().map_or("", |output| output.text());
                format!("completed {output}")
            }
            RunOutcome::Failed { error } => format!("failed {}: {}", error.code, error.in_full()),
            RunOutcome::Interrupted { reason } => {
                format!("interrupted {}", text_of(reason.as_ref()))
            }
            RunOutcome::Aborted { reason } => format!("aborted {}", text_of(reason.as_ref())),
            RunOutcome::Suspended { on } => suspension_details(on),
            _ => String::new(),
        },
        Event::Submitted { call, answer, by, .. } => {
            let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
            format!("{call} {}{by}", answer_details(answer)).trim_end().to_owned()
        }
        Event::MessageQueued { message, .. } => message.content.clone(),
        Event::MessagesTaken { requests } => count(requests.len() as u64, "message"),
        Event::UserMessages { messages } => {
            let texts: Vec<_> = messages.iter().map(|message| message.content.as_str()).collect();
            texts.join(" / ")
        }
        Event::ModelReplied(reply) => reply_details(reply),
        Event::CorrectionSent { message, .. } => message.content.clone(),
        Event::HistoryHealed { results } => format!("{} calls", results.len()),
        Event::ChildStarted(child) => {
            format!("{} {} as {}", child.call, child.agent, child.session)
        }
        Event::ChildWaiting { call } => call.to_string(),
        Event::ToolStarted { call, attempt, .. } => format!("{call} attempt {attempt}"),
        Event::PartRepeated { call } => call.as_ref().map(ToString::to_string).unwrap_or_default(),
        Event::ToolFinished(finish) => finish_details(finish),
        Event::InterruptRequested { reason, .. } | Event::AbortRequested { reason, .. } => {
            text_of(reason.as_ref())
        }
        Event::StateChanged { by, .. } => format!("by {by}"),
        Event::UsageRecorded { source_type, source_name, amount, .. } => {
            format!("{source_type} {source_name} {amount}")
        }
        Event::StepClosed { step } => step.to_string(),
        Event::Forked { from, at, .. } => format!("from {from} at {at}"),
        Event::Rewound { to } => format!("to {to}"),
        _ => String::new(),
    }
}

fn reply_details(reply: &ModelReply) -> String {
    let took = duration(std::time::Duration::from_millis(reply.took_ms));
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
    let took = duration(std::time::Duration::from_millis(finish.took_ms));
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
        _ => String::new(),
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
