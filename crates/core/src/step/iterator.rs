//! The sans-I/O machine that drivers turn: what to do next, as a function of the events.

use std::sync::Arc;

use super::finish::{synthesize_finish_tool_result, tool_names};
use super::plan::{PlanOptions, plan_step_processing};
use super::result::StopReason;
use super::stop::{is_error_stop_reason, is_recoverable_error_stop_reason};
use super::verdict::{Verdict, owes_output, verdict};
use crate::agent::{AgentDefinition, AnyAgent, Completion};
use crate::clock::Timestamp;
use crate::error::{ErrorCode, ErrorRecord, Result};
use crate::event::{Event, FinishOutput, RunOutcome, ToolFinish, ToolOutcome};
use crate::id::{AppendId, CallId};
use crate::message::{AssistantMessage, ToolCall, UserMessage};
use crate::session::{OpenStep, Session};
use crate::tool::{EffectClass, FINISH_TOOL};

/// What to do next. Small, and made of ids: payloads stay in the session.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// No run is current.
    Idle,
    /// Effect: make the model call of this step.
    CallModel {
        /// The step.
        step: u32,
        /// Whether the model has to call the completion tool: it was told to, or it is `__finish__`
        /// and this is the last step that the turn may take.
        force_completion: bool,
    },
    /// Effect: record that these at-most-once calls are about to run.
    StartTools(Vec<CallTask>),
    /// Effect: run these side by side (phase 1).
    RunTools(Vec<CallTask>),
    /// Effect: run this finish tool, which sees the state of phase 1 (phase 2).
    RunFinishTool(CallTask),
    /// Decision: answer these calls without running anything.
    Answer(Vec<ToolFinish>),
    /// Decision: tell the model that its answer does not complete the turn.
    Correct(UserMessage),
    /// Decision: close the step.
    CloseStep(u32),
    /// Decision: end the run.
    End(RunOutcome),
    /// Decision: answer the calls that an imported log left open.
    Heal(Vec<(CallId, ToolOutcome)>),
}

/// One call to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTask {
    /// The call.
    pub call: CallId,
    /// Which try this is, from 1, counting the runs that may have tried before.
    pub attempt: u32,
    /// Whether an earlier run may have carried it out, and it must not run twice: ask
    /// `reconcile`.
    pub in_doubt: bool,
}

/// The machine over the step functions: same events and agent in, same action out.
#[derive(Debug, Clone)]
pub struct StepIterator {
    agent: AnyAgent,
    session: Session,
    /// The reply whose open calls were all found fit to run. What is asked many times in a step is
    /// checked against the schemas once.
    fit: Option<Arc<AssistantMessage>>,
    /// What `decide` found to be next, until the session changes.
    found: Option<Action>,
}

impl StepIterator {
    /// The machine at the end of a session's log.
    #[must_use]
    pub fn new(agent: AnyAgent, session: Session) -> Self {
        Self { agent, session, fit: None, found: None }
    }

    /// The session so far.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Notes what an append was acknowledged as. That changes nothing of what comes next.
    pub(crate) fn settle(&mut self, append: AppendId, at: Timestamp) {
        self.session.settle(append, at);
    }

    pub(crate) fn session_mut(&mut self) -> &mut Session {
        self.found = None;
        &mut self.session
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// What to do next. Asking has no effect.
    #[must_use]
    pub fn next(&self) -> Action {
        self.found.clone().unwrap_or_else(|| self.find())
    }

    /// How the run ends, if that is what comes next.
    #[must_use]
    pub fn ending(&self) -> Option<RunOutcome> {
        match &self.found {
            Some(Action::End(outcome)) => Some(outcome.clone()),
            Some(_) => None,
            None => match self.find() {
                Action::End(outcome) => Some(outcome),
                _ => None,
            },
        }
    }

    fn find(&self) -> Action {
        let (session, agent) = (&self.session, &*self.agent);
        if session.current_run().is_none() {
            return Action::Idle;
        }
        if session.needs_heal() {
            return Action::Heal(heal(session));
        }
        match session.open_step() {
            Some(step) => next_in_step(session, agent, step, self.is_fit(step)),
            None => next_step(session, agent),
        }
    }

    /// Takes what came of an effect.
    ///
    /// # Errors
    /// If an event is not legal here; those before it were taken.
    pub fn supply(&mut self, events: &[Event]) -> Result<()> {
        let run = self.session.current_run().map(|run| run.id.clone());
        let session = self.session_mut();
        for event in events {
            session.apply(event, run.as_ref())?;
        }
        Ok(())
    }

    /// Carries out every decision up to the next effect or the end of the run, and returns the
    /// events that record them. The end is left to the driver, which has hooks to run first.
    ///
    /// # Errors
    /// If a decision is not legal, which is a bug.
    pub fn decide(&mut self) -> Result<Vec<Event>> {
        let mut decided = Vec::new();
        loop {
            let step = self.session.open_step().map_or(0, |step| step.reply.step);
            let events = match self.find() {
                Action::Answer(results) => results.into_iter().map(Event::from).collect(),
                Action::Correct(message) => vec![Event::CorrectionSent { step, message }],
                Action::CloseStep(step) => vec![Event::StepClosed { step }],
                Action::Heal(results) => vec![Event::HistoryHealed { results }],
                found => {
                    // An action other than an answer: no call was refused.
                    let step = self.session.open_step();
                    self.fit = step.and_then(|step| step.reply.message.clone());
                    self.found = Some(found);
                    return Ok(decided);
                }
            };
            self.supply(&events)?;
            decided.extend(events);
        }
    }

    fn is_fit(&self, step: &OpenStep) -> bool {
        let reply = step.reply.message.as_ref();
        self.fit.as_ref().zip(reply).is_some_and(|(fit, reply)| Arc::ptr_eq(fit, reply))
    }
}

fn next_step(session: &Session, agent: &AgentDefinition) -> Action {
    if let Some(request) = session.abort_request() {
        return Action::End(RunOutcome::Aborted { reason: request.reason.clone() });
    }
    let verdict = verdict(session, agent);
    if let Some(Verdict::End(outcome)) = verdict {
        return Action::End(outcome);
    }
    if let Some(request) = session.interrupt_request() {
        return Action::End(RunOutcome::Interrupted { reason: request.reason.clone() });
    }
    let corrected = session.closed_step().is_some_and(|step| step.correction.is_some());
    // What tools return in the last step that the turn may take, nobody could use any more. A
    // finish tool of the user's acts, so a limit is no reason to have it called.
    let last = *agent.completion() == Completion::Finish
        && session.turn_steps() + 1 >= agent.limits().max_steps;
    Action::CallModel { step: session.last_step() + 1, force_completion: corrected || last }
}

fn next_in_step(
    session: &Session,
    agent: &AgentDefinition,
    step: &OpenStep,
    is_fit: bool,
) -> Action {
    let answers = answers(session, agent, step, is_fit);
    if !answers.is_empty() {
        return Action::Answer(answers);
    }
    let open = || step.pairs().filter(|(_, state)| state.finish.is_none()).map(|(call, _)| call);
    let is_finish = |call: &ToolCall| agent.tool(&call.name).is_some_and(|tool| tool.finish);
    let task = |call: &ToolCall| task(session, agent, step, call);
    let regular: Vec<_> = open().filter(|call| !is_finish(call)).map(task).collect();
    // Finish tools run one by one, when all others have their results.
    let finish = if regular.is_empty() { open().next().map(task) } else { None };
    if regular.is_empty() && finish.is_none() {
        let retries_left = session.corrections() < agent.limits().completion_retries
            && session.abort_request().is_none();
        if step.correction.is_none() && retries_left && owes_output(agent, step) {
            return Action::Correct(correction(agent, step));
        }
        return Action::CloseStep(step.reply.step);
    }
    let next = regular.iter().chain(&finish);
    let unrecorded: Vec<_> = next.filter(|task| needs_start(agent, step, task)).cloned().collect();
    if !unrecorded.is_empty() {
        return Action::StartTools(unrecorded);
    }
    finish.map_or_else(|| Action::RunTools(regular), Action::RunFinishTool)
}

fn needs_start(agent: &AgentDefinition, step: &OpenStep, task: &CallTask) -> bool {
    let tool = step.tool_call(&task.call).and_then(|call| agent.tool(&call.name));
    let at_most_once = tool.is_some_and(|tool| tool.effect == EffectClass::AtMostOnce);
    at_most_once && step.call(&task.call).is_some_and(|state| state.started.is_none())
}

fn task(session: &Session, agent: &AgentDefinition, step: &OpenStep, call: &ToolCall) -> CallTask {
    let at_most_once =
        agent.tool(&call.name).is_some_and(|tool| tool.effect == EffectClass::AtMostOnce);
    let started = step.call(&call.id).and_then(|state| state.started.as_ref());
    let here = session.current_run().map(|run| &run.id);
    CallTask {
        call: call.id.clone(),
        attempt: step.runs,
        in_doubt: at_most_once && started.is_some_and(|started| Some(&started.run) != here),
    }
}

/// The open calls that are answered without running anything. Of a reply that `is_fit` none is
/// refused.
fn answers(
    session: &Session,
    agent: &AgentDefinition,
    step: &OpenStep,
    is_fit: bool,
) -> Vec<ToolFinish> {
    let open = || step.pairs().filter(|(_, state)| state.finish.is_none()).map(|(call, _)| call);
    if open().next().is_none() {
        return Vec::new();
    }
    if let Some(reason) = fatal_stop(step) {
        let message = format!("not run: {}", super::stop_reason_error(reason, None).message);
        return open().map(|call| error(call, ErrorCode::ToolNotRun, message.clone())).collect();
    }
    let finish = open().any(|call| *call.name == *FINISH_TOOL);
    if finish && *agent.completion() == Completion::Finish {
        return finish_answers(agent, step, open());
    }
    if session.abort_request().is_some() {
        return open().map(aborted).collect();
    }
    if is_fit {
        return Vec::new();
    }
    open().filter_map(|call| refusal(agent, step, call)).collect()
}

/// The answer to a call of an aborted run that has no result.
fn aborted(call: &ToolCall) -> ToolFinish {
    let message = "the run was aborted before the call had a result; whether it acted is not known";
    error(call, ErrorCode::ToolOutcomeUnknown, message)
}

fn fatal_stop(step: &OpenStep) -> Option<StopReason> {
    step.reply.stop_reason.filter(|reason| {
        is_error_stop_reason(*reason) && !is_recoverable_error_stop_reason(*reason)
    })
}

/// The answers of a reply that calls `__finish__`: the acknowledgement and the word to the calls
/// beside it, or what is wrong with the output.
fn finish_answers<'a>(
    agent: &AgentDefinition,
    step: &OpenStep,
    open: impl Iterator<Item = &'a ToolCall>,
) -> Vec<ToolFinish> {
    let options = PlanOptions { output_schema: agent.output_schema() };
    let plan = plan_step_processing(&step.reply.to_step_result(), &options);
    let Some(output) = plan.output else {
        let message = format!("the output was not accepted: {}", plan.violations.join("; "));
        return open
            .filter(|call| *call.name == *FINISH_TOOL)
            .map(|call| error(call, ErrorCode::OutputInvalid, message.clone()))
            .collect();
    };
    let mut accepted = false;
    open.map(|call| {
        if *call.name == *FINISH_TOOL && !accepted {
            accepted = true;
            let mut result = synthesize_finish_tool_result(call.id.clone());
            result.finish = Some(FinishOutput::Output(output.clone()));
            result
        } else {
            error(call, ErrorCode::ToolNotRun, "not run: the turn was finished in the same reply")
        }
    })
    .collect()
}

/// Why a call is not run at all, if it is not.
fn refusal(agent: &AgentDefinition, step: &OpenStep, call: &ToolCall) -> Option<ToolFinish> {
    let Some(tool) = agent.tool(&call.name) else {
        let known = agent.effective_tools().specs().iter().map(|spec| &*spec.name);
        let message = format!(
            "there is no tool `{}`; the tools are: {}",
            call.name,
            known.collect::<Vec<_>>().join(", ")
        );
        let code = if step.runs > 1 { ErrorCode::ToolMissing } else { ErrorCode::ToolUnknown };
        return Some(error(call, code, message));
    };
    let Some(input) = call.arguments.as_json() else {
        let message = "the arguments are not valid JSON; the call was not run";
        return Some(error(call, ErrorCode::ToolCallTruncated, message));
    };
    if step.reply.stop_reason == Some(StopReason::MaxTokens) {
        let message = "the reply was cut off at the token limit; the call was not run";
        return Some(error(call, ErrorCode::ToolCallTruncated, message));
    }
    let violations = tool.input().ok()?.validate(&input.to_value()).err()?;
    let message = format!("the arguments do not fit: {}", violations.join("; "));
    Some(error(call, ErrorCode::ToolInputInvalid, message))
}

fn error(call: &ToolCall, code: ErrorCode, message: impl Into<String>) -> ToolFinish {
    let outcome = ToolOutcome::Error(ErrorRecord::new(code, message));
    ToolFinish::without_run(call.id.clone(), outcome)
}

/// How the correction of a native output begins, and that of one that a tool hands in.
const CORRECTIONS: [&str; 2] = [
    "Answer again with one JSON value that fits the given schema, and nothing else",
    "The task is not complete: its output has to be handed in.",
];

/// Whether a message of a transcript is the framework's word on an answer that does not complete
/// the turn, and not the beginning of another turn.
#[must_use]
pub fn is_correction(message: &UserMessage) -> bool {
    message.hidden && CORRECTIONS.iter().any(|begin| message.content.starts_with(begin))
}

fn correction(agent: &AgentDefinition, step: &OpenStep) -> UserMessage {
    let [native, handed_in] = CORRECTIONS;
    let how = match agent.completion() {
        Completion::Native => native.to_owned(),
        completion => format!(
            "{handed_in} Call {} directly now, with the output as its arguments",
            tool_names(completion)
        ),
    };
    let cut_off = step.reply.stop_reason == Some(StopReason::MaxTokens);
    let hint =
        if cut_off { ". Your reply was cut off at the token limit: keep it short." } else { "." };
    UserMessage { content: format!("{how}{hint}"), hidden: true }
}

/// What the calls get that an imported log left without a result.
pub(crate) fn heal(session: &Session) -> Vec<(CallId, ToolOutcome)> {
    session
        .unpaired_calls()
        .map(|call| {
            let outcome = if *call.name == *FINISH_TOOL {
                synthesize_finish_tool_result(call.id.clone()).outcome
            } else {
                let message = "not run: the session was imported without the result";
                ToolOutcome::Error(ErrorRecord::new(ErrorCode::ToolNotRun, message))
            };
            (call.id.clone(), outcome)
        })
        .collect()
}
