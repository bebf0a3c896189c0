//! The summary of a run that has ended, as text or JSON.

use std::io;

use anyhow::Result;
use helix_agents::clock::short_duration;
use helix_agents::error::{ErrorCode, ErrorRecord};
use helix_agents::event::PendingKind;
use helix_agents::executor::{AgentResult, RunHandle};
use helix_agents::json::Json;
use helix_agents::session::{PendingCallView, RunStatus};
use helix_agents::terminal::output::{self, Output};
use helix_agents::terminal::{Screen, Style};
use helix_agents::usage::Usage;
use helix_agents_demo::Report;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::follow_up::{self, ELSEWHERE, command};
use crate::location::Location;
use crate::model::is_script;
use crate::overview::Overview;
use crate::pending_call::{arguments, kind};
use crate::place::Place;
use crate::run_view::RunView;
use crate::session_tags;
use crate::text::{count, one_line, shortened};

/// The maximum length of a pending call's arguments.
const MAX_CHARS: usize = 200;

/// The result of a run that has ended, and the state of its session.
#[derive(Debug)]
pub(crate) struct EndedRun {
    pub(crate) result: AgentResult,
    pub(crate) waiting: Vec<PendingCallView>,
    session: Overview,
}

impl EndedRun {
    /// Loads the state of the session, and the pending calls of the session and its sub-agents.
    ///
    /// # Errors
    /// Returns the errors of the place.
    pub(crate) async fn new(
        result: AgentResult,
        place: &Place,
        handle: &RunHandle,
    ) -> Result<Self> {
        let waiting = match result.status.is_suspended() {
            true => place.pending_calls(handle.session()).await?,
            false => Vec::new(),
        };
        let session = place.overview(handle.session()).await?;
        Ok(Self { result, waiting, session })
    }
}

/// Shows the result of a run and returns the exit code.
pub(crate) fn show(handle: &RunHandle, ended: &EndedRun, run_view: RunView<'_>) -> Result<Exit> {
    if run_view.screen.is_json() {
        run_view.screen.json(&as_json(handle, ended, run_view))?;
    } else {
        show_text(ended, run_view)?;
    }
    Ok(Exit::of(ended.result.status))
}

fn as_json(handle: &RunHandle, ended: &EndedRun, run_view: RunView<'_>) -> Value {
    let EndedRun { result, waiting, session } = ended;
    let suspended = result.suspended.as_ref().map(|on| {
        json!({
            "reason": on.reason(),
            "deadline": on.deadline(),
            "calls": waiting,
            "resume_command": follow_up::resume(&session.session, &session.agent, &session.tags, run_view.db),
        })
    });
    json!({
        "session": handle.session(),
        "run": handle.run(),
        "status": result.status,
        "output": result.output,
        "error": result.error,
        "reason": result.reason,
        "suspended": suspended,
        "model": run_view.model.map(str::to_owned).or_else(|| session.models()),
        "scripted": run_view.model.is_some_and(is_script),
        "runs": session.runs,
        "steps": session.steps,
        "tool_calls": session.usage.tool_calls,
        "usage": session.usage.tokens,
        "took_ms": run_view.took().map(|took| took.as_millis()),
        "db": run_view.db.shown(),
        "log_command": command("sessions log", &session.session, run_view.db),
    })
}

fn show_text(ended: &EndedRun, run_view: RunView<'_>) -> io::Result<()> {
    let EndedRun { result, waiting, session } = ended;
    let RunView { screen, db, model, .. } = run_view;
    screen.line("")?;
    if let Some(output) = &result.output {
        let ran_here = session.last_run.as_ref().is_some_and(|(_, steps)| *steps > 0);
        show_output(screen, session, output, run_view.started.is_some() && ran_here)?;
    }
    if let Some(error) = &result.error {
        screen.error(error)?;
        screen.line("")?;
    }
    let status = match result.status {
        RunStatus::Completed => screen.styled(Style::Good, "completed"),
        status if status.is_suspended() => screen.styled(Style::Bold, "suspended"),
        status => screen.styled(Style::Bad, status.as_str()),
    };
    let (usage, runs) = (&session.usage, u64::from(session.runs));
    let took =
        run_view.took().map_or_else(String::new, |took| format!(" in {}", short_duration(took)));
    let steps = count(u64::from(session.steps), "step");
    let calls = count(usage.tool_calls, "tool call");
    screen.line(format!("{status}{took}: {steps}, {calls}, {}", count(runs, "run")))?;
    if model.is_some_and(is_script) {
        screen.field("tokens", "none: no model was called")?;
    } else {
        let Usage { input_tokens, cached_tokens, output_tokens, .. } = usage.tokens;
        let tokens = format!("{input_tokens} in ({cached_tokens} cached), {output_tokens} out");
        screen.field("tokens", tokens)?;
    }
    let used = session.models();
    screen.field("model", model.or(used.as_deref()).unwrap_or("not recorded"))?;
    let place = if db.is_server() { "at" } else { "in" };
    screen.field("session", format!("{} {place} {}", session.session, db.shown()))?;
    screen.field("log", command("sessions log", &session.session, db))?;
    for call in waiting {
        show_waiting(screen, call, db)?;
    }
    let is_resumable = matches!(result.status, RunStatus::Interrupted | RunStatus::Failed);
    if is_resumable || result.status.is_suspended() {
        let mut resume = follow_up::resume(&session.session, &session.agent, &session.tags, db);
        let is_used_up = |error: &ErrorRecord| error.code == ErrorCode::BudgetExceeded.as_str();
        if let Some(resume) = &mut resume
            && result.error.as_ref().is_some_and(is_used_up)
        {
            resume.push_str(" (after raising `limits` in the agent file)");
        }
        screen.field("resume", resume.as_deref().unwrap_or(ELSEWHERE))?;
    }
    Ok(())
}

/// Shows a pending call and the command that answers it.
fn show_waiting(screen: &Screen, call: &PendingCallView, db: &Location) -> io::Result<()> {
    let reference = call.reference();
    let (tool, arguments) = (&call.pending.tool, shortened(&arguments(call), MAX_CHARS));
    screen.field("waits", format!("{reference} for {}: {tool} {arguments}", kind(call)))?;
    match call.pending.deadline {
        Some(deadline) if call.expired => {
            return screen.field("deadline", format!("{deadline} (passed)"));
        }
        Some(deadline) => screen.field("deadline", deadline)?,
        None => {}
    }
    let command = |word: &str| follow_up::answer(word, &reference, db);
    let answer = match call.pending.kind {
        PendingKind::Client => format!("{} --result JSON", command("answer")),
        _ => format!("{} (or: deny, edit, show)", command("approve")),
    };
    screen.field("answer", answer)
}

/// Details of a conversation turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// The token usage of the session before the turn.
    pub(crate) before: Usage,
    /// Whether the last text of the model is already shown.
    pub(crate) text_shown: bool,
}

/// Shows the result of a conversation turn and returns the exit code.
pub(crate) fn show_turn(
    handle: &RunHandle,
    ended: &EndedRun,
    turn: Turn,
    run_view: RunView<'_>,
) -> Result<Exit> {
    let (screen, result) = (run_view.screen, &ended.result);
    let session = &ended.session;
    if screen.is_json() {
        let mut document = as_json(handle, ended, run_view);
        if let Some(members) = document.as_object_mut() {
            members.insert("turn".to_owned(), own_costs(handle, session, turn.before, run_view));
        }
        screen.json(&document)?;
        return Ok(Exit::of(result.status));
    }
    if let Some(output) = &result.output {
        show_output(screen, session, output, turn.text_shown)?;
    }
    if let Some(error) = &result.error {
        screen.error(error)?;
    }
    match result.status {
        RunStatus::Completed => {}
        RunStatus::Aborted => screen.line("aborted")?,
        status if status.is_suspended() => {
            for call in &ended.waiting {
                show_waiting(screen, call, run_view.db)?;
            }
            screen.line("suspended: /resume continues once the calls are answered")?;
        }
        status => screen.line(format!(
            "{}: /resume continues the turn, a message starts another one",
            status.as_str()
        ))?,
    }
    if output::is_terminal(Output::Out) {
        screen.line(screen.styled(Style::Dim, costs(handle, session, turn.before, run_view)))?;
    }
    Ok(Exit::of(result.status))
}

/// The steps, tokens and time of the turn alone, in contrast to those of the session.
fn own_costs(
    handle: &RunHandle,
    session: &Overview,
    before: Usage,
    run_view: RunView<'_>,
) -> Value {
    let usage = session.usage.tokens;
    json!({
        "steps": session.steps_of(handle.run()),
        "usage": {
            "input_tokens": usage.input_tokens.saturating_sub(before.input_tokens),
            "output_tokens": usage.output_tokens.saturating_sub(before.output_tokens),
            "cached_tokens": usage.cached_tokens.saturating_sub(before.cached_tokens),
            "reasoning_tokens": usage.reasoning_tokens.saturating_sub(before.reasoning_tokens),
        },
        "took_ms": run_view.took().map(|took| took.as_millis()),
    })
}

/// Formats the costs of a turn: `2 steps · 310 in, 25 out · 4.2 s`.
fn costs(handle: &RunHandle, session: &Overview, before: Usage, run_view: RunView<'_>) -> String {
    let steps = session.steps_of(handle.run());
    let mut parts = vec![count(u64::from(steps), "step")];
    let usage = session.usage.tokens;
    if !usage.is_zero() {
        parts.push(format!(
            "{} in, {} out",
            usage.input_tokens.saturating_sub(before.input_tokens),
            usage.output_tokens.saturating_sub(before.output_tokens)
        ));
    }
    parts.extend(run_view.took().map(short_duration));
    parts.join(" · ")
}

/// Shows the output: the demo's report, text or JSON. Text that was streamed is not shown again.
fn show_output(
    screen: &Screen,
    session: &Overview,
    output: &Json,
    was_shown: bool,
) -> io::Result<()> {
    let value = output.to_value();
    if screen.is_for_answers() {
        return match &value {
            Value::String(text) => screen.answer(text),
            _ => screen.answer(format!("{value:#}")),
        };
    }
    if let Value::String(text) = &value {
        return if was_shown {
            Ok(())
        } else {
            screen.line(format!("{}\n", screen.untrusted(text)))
        };
    }
    let Some(report) = report(session, output) else {
        return screen.line(format!("{value:#}\n"));
    };
    screen.line(screen.styled(Style::Bold, "Report"))?;
    screen.line(format!("  Question: {}", one_line(&report.question)))?;
    screen.line(format!("  Answer:   {}", one_line(&report.answer)))?;
    for fact in &report.facts {
        let fact = format!("{}: {}", fact.body, fact.statement);
        screen.line(format!("  - {}", one_line(&fact)))?;
    }
    screen.line("")
}

/// Parses the output as a report, if the session is a demo session.
fn report(session: &Overview, output: &Json) -> Option<Report> {
    let is_demo = session_tags::is_demo(&session.agent, &session.tags);
    is_demo.then(|| output.to_typed().ok()).flatten()
}
