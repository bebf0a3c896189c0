//! A driver of the step machine: a runtime without I/O.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use super::{Entry, log_text};
use crate::agent::AnyAgent;
use crate::budget::Budget;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{Answer, Event, ModelReply, ToolFinish, ToolOutcome, Trigger};
use crate::id::{CallId, RequestId, RunId, SessionId};
use crate::json::Json;
use crate::llm::LlmResponse;
use crate::message::UserMessage;
use crate::session::Session;
use crate::state::Patch;
use crate::step::{Action, CallTask, StepIterator, StepResult, finish_output, to_outcome};
use crate::stream::ChunkKind;
use crate::tool::{ToolContext, ToolContextConfig, ToolStream};
use crate::usage::Usage;

/// The step machine, and the log of all events applied to it.
#[derive(Clone)]
pub(crate) struct Hand {
    pub(crate) iterator: StepIterator,
    pub(crate) log: Vec<Entry>,
    /// The time of the store's clock for each event.
    pub(crate) times: Vec<Timestamp>,
    runs: u32,
}

impl Hand {
    /// Creates a session whose first run `r1` has started with the message "go".
    pub(crate) fn new(agent: &AnyAgent) -> Self {
        let session = Session::new(SessionId::from("s"));
        let iterator = StepIterator::new(Arc::clone(agent), session);
        let mut hand = Self { iterator, log: Vec::new(), times: Vec::new(), runs: 0 };
        hand.put(Event::SessionCreated {
            agent: Arc::clone(agent.name()),
            tags: std::collections::BTreeMap::new(),
            state: agent.initial_state().clone(),
            parent: None,
        })
        .unwrap();
        hand.start(Trigger::Execute).unwrap();
        hand.say("go");
        hand
    }

    /// Creates the machine from a log, with a new fold.
    pub(crate) fn refolded(agent: &AnyAgent, log: &[Entry]) -> Self {
        Self::refolded_at(agent, log, &vec![Timestamp(0); log.len()])
    }

    /// Creates the machine from a log with times, with a new fold.
    pub(crate) fn refolded_at(agent: &AnyAgent, log: &[Entry], times: &[Timestamp]) -> Self {
        let mut session = Session::new(SessionId::from("s"));
        for ((run, event), at) in log.iter().zip(times) {
            session.observe(*at);
            session.apply(event, run.as_ref()).unwrap();
        }
        let runs = u32::try_from(session.runs().count()).unwrap();
        let iterator = StepIterator::new(Arc::clone(agent), session);
        Self { iterator, log: log.to_vec(), times: times.to_vec(), runs }
    }

    pub(crate) fn session(&self) -> &Session {
        self.iterator.session()
    }

    pub(crate) fn next(&self) -> Action {
        self.iterator.next()
    }

    /// Applies an event of the current run, or the start of a new run.
    pub(crate) fn put(&mut self, event: Event) -> Result<()> {
        let run = match &event {
            Event::RunStarted { run, .. } => Some(run.clone()),
            _ => self.session().current_run().map(|run| run.id.clone()),
        };
        self.put_as(run.as_ref(), event)
    }

    /// Applies an event of the given run.
    pub(crate) fn put_as(&mut self, run: Option<&RunId>, event: Event) -> Result<()> {
        self.iterator.session_mut().apply(&event, run)?;
        self.log.push((run.cloned(), event));
        self.times.push(self.session().clock());
        Ok(())
    }

    /// Starts the next run (`r2` and so on).
    pub(crate) fn start(&mut self, trigger: Trigger) -> Result<()> {
        self.start_with(trigger, None)
    }

    /// Starts the next run with other limits.
    pub(crate) fn start_with(&mut self, trigger: Trigger, budget: Option<Budget>) -> Result<()> {
        self.start_as(trigger, budget, None)
    }

    /// Starts the next run and clears this interrupt.
    pub(crate) fn start_clearing(&mut self, trigger: Trigger, clears: &RequestId) -> Result<()> {
        self.start_as(trigger, None, Some(clears.clone()))
    }

    fn start_as(
        &mut self,
        trigger: Trigger,
        budget: Option<Budget>,
        clears: Option<RequestId>,
    ) -> Result<()> {
        let after = self.session().last_run().map(|run| run.id.clone());
        self.put(Event::RunStarted {
            run: RunId::from(format!("r{}", self.runs + 1)),
            after,
            trigger,
            runtime: "hand".into(),
            stream_from: 0,
            budget: budget.map(Arc::new),
            clears,
            trace: None,
        })?;
        self.runs += 1;
        Ok(())
    }

    /// Rewinds to a checkpoint and starts the next run.
    pub(crate) fn go_back(&mut self, to: u64) -> Result<()> {
        let trigger = match self.session().current_run() {
            Some(_) => Trigger::Recover,
            None => Trigger::Resume,
        };
        let run = RunId::from(format!("r{}", self.runs + 1));
        self.put_as(Some(&run), Event::Rewound { to })?;
        self.start(trigger)
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.put(Event::UserMessages { messages: vec![UserMessage::new(text)] }).unwrap();
    }

    pub(crate) fn interrupt(&mut self) {
        let (request, run) = self.request();
        let reason = Some("stop".to_owned());
        self.put_as(None, Event::InterruptRequested { request, run, reason }).unwrap();
    }

    pub(crate) fn abort(&mut self) {
        let (request, run) = self.request();
        let reason = Some("stop".to_owned());
        self.put_as(None, Event::AbortRequested { request, run, reason }).unwrap();
    }

    /// Submits an answer to a call.
    pub(crate) fn answer(&mut self, call: &str, answer: Answer) -> Result<()> {
        let (request, call) = (self.request_id(), CallId::from(call));
        self.put_as(None, Event::Submitted { request, call, answer, by: None, trace: None })
    }

    /// Queues a message.
    pub(crate) fn queue(&mut self, text: &str) {
        let (request, message) = (self.request_id(), UserMessage::new(text));
        self.put_as(None, Event::MessageQueued { request, message, from: None, trace: None })
            .unwrap();
    }

    /// Sets the store's clock.
    pub(crate) fn clock(&mut self, millis: i64) {
        self.iterator.session_mut().observe(Timestamp(millis));
    }

    fn request_id(&self) -> RequestId {
        RequestId::from(format!("q{}", self.log.len()))
    }

    fn request(&self) -> (RequestId, RunId) {
        let run = self.session().current_run().unwrap().id.clone();
        (self.request_id(), run)
    }

    /// Executes the decisions that are due.
    pub(crate) fn decide(&mut self) {
        let run = self.session().current_run().map(|run| run.id.clone());
        let decided = self.iterator.decide().unwrap();
        self.times.extend(decided.iter().map(|_| self.iterator.session().clock()));
        self.log.extend(decided.into_iter().map(|event| (run.clone(), event)));
    }

    /// Applies a model reply, and then the decisions that follow.
    pub(crate) fn reply(&mut self, result: StepResult) -> &mut Self {
        let mut response = LlmResponse::new(result, Usage::new(10, 5));
        response.raw_stop_reason = Some("odd".to_owned());
        self.respond(response)
    }

    /// Applies a response of the model, and then the decisions that follow.
    pub(crate) fn respond(&mut self, response: LlmResponse) -> &mut Self {
        let step = self.session().last_step() + 1;
        self.put(Event::from(ModelReply::from_response(step, response, 0))).unwrap();
        self.decide();
        self
    }

    /// Applies the result of a call by the current run, and then the decisions that follow.
    pub(crate) fn result(&mut self, call: &str, result: serde_json::Value) -> &mut Self {
        self.put(Event::from(success(call, result))).unwrap();
        self.decide();
        self
    }

    /// Executes effects and decisions with the agent's own tools and the scripted model replies,
    /// until the run or the script ends.
    pub(crate) fn drive(&mut self, script: impl IntoIterator<Item = StepResult>) -> &mut Self {
        let mut script = script.into_iter();
        loop {
            self.decide();
            match self.next() {
                Action::CallModel { .. } => match script.next() {
                    Some(result) => self.reply(result),
                    None => return self,
                },
                Action::RunTools { calls, .. } => self.start_tools(&calls).run_tools(&calls),
                Action::RunFinishTool(task) => {
                    self.start_tools(std::slice::from_ref(&task)).run_tools(&[task])
                }
                Action::End(outcome) => {
                    self.put(Event::RunEnded { outcome }).unwrap();
                    return self;
                }
                _ => return self,
            };
        }
    }

    /// Records the starts of at-most-once calls.
    pub(crate) fn start_tools(&mut self, tasks: &[CallTask]) -> &mut Self {
        for task in tasks.iter().filter(|task| task.at_most_once) {
            let (call, attempt) = (task.call.clone(), task.attempt);
            self.put(Event::ToolStarted { call, attempt, timeout_ms: None }).unwrap();
        }
        self
    }

    /// Runs the calls and records their results in reverse order, because the order must not
    /// matter.
    fn run_tools(&mut self, tasks: &[CallTask]) -> &mut Self {
        let results: Vec<_> = tasks.iter().map(|task| run_tool(&self.iterator, task)).collect();
        for result in results.into_iter().rev() {
            self.put(Event::from(result)).unwrap();
        }
        self
    }

    /// Returns the log as text, without the first three lines, which are always the same.
    pub(crate) fn story(&self) -> String {
        log_text(self.log.get(3..).unwrap())
    }
}

/// Returns the successful result of a tool call.
pub(crate) fn success(call: &str, result: serde_json::Value) -> ToolFinish {
    let outcome = ToolOutcome::Success(result.into());
    ToolFinish { attempts: 1, ..ToolFinish::without_run(CallId::from(call), outcome) }
}

/// Returns the result of running a call with the agent's own tool.
pub(crate) fn run_tool(iterator: &StepIterator, task: &CallTask) -> ToolFinish {
    let (agent, session) = (iterator.agent(), iterator.session());
    let step = session.open_step().unwrap();
    let call = step.tool_call(&task.call).unwrap();
    let tool = agent.tool(&call.name).unwrap();
    let input = &step.input(&call.id).unwrap();
    let cx = ToolContext::new(ToolContextConfig {
        agent: Arc::clone(agent.name()),
        session: session.id().clone(),
        run: session.current_run().unwrap().id.clone(),
        fencing_token: session.current_run().unwrap().version,
        step: step.reply.step,
        call: call.id.clone(),
        tool: tool.name().into(),
        arguments: input.text().to_owned(),
        attempt: task.attempt,
        timeout: None,
        cancel: CancellationToken::new(),
        state: session.step_state(),
        stream: Arc::new(DiscardStream),
        trace: None,
    });
    let returned: std::result::Result<Json, _> =
        tool.invoke(input, cx.clone()).now_or_never().unwrap();
    let outcome = to_outcome(agent, tool, returned);
    // Like the runtimes, it discards the state changes and attachments of a failed tool.
    let kept = matches!(outcome, ToolOutcome::Success(_));
    ToolFinish {
        call: call.id.clone(),
        finish: finish_output(agent, tool, &outcome),
        outcome,
        input: None,
        attachments: if kept { cx.effects().attachments } else { Vec::new() },
        state_patch: if kept { cx.effects().state_patch } else { Patch::default() },
        took_ms: 0,
        ended: None,
        attempts: task.attempt,
        child: None,
    }
}

struct DiscardStream;

impl ToolStream for DiscardStream {
    fn show(&self, _: ChunkKind) {}
}
