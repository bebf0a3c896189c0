//! Logs of sessions for unit tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::agent::CompanionMode;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::event::{
    Answer, ChildStart, CompanionRef, Event, ModelReply, ParentRef, PendingCall, PendingKind,
    RunOutcome, Suspension, ToolFinish, ToolOutcome, Trigger,
};
use helix_agents_core::id::{CallId, RequestId, RunId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::message::{Arguments, AssistantMessage, Thinking, ToolCall, UserMessage};
use helix_agents_core::session::Session;
use helix_agents_core::usage::Usage;
use serde_json::{Value, json};

/// A session whose log a test writes.
pub(crate) struct Log {
    session: Session,
    runs: u32,
}

impl Log {
    /// Creates a root session.
    pub(crate) fn new(id: &str) -> Self {
        Self::created(id, None)
    }

    /// Creates the session of a sub-agent or companion.
    pub(crate) fn of_child(start: &ChildStart, parent: &str) -> Self {
        let parent = ParentRef {
            session: parent.into(),
            call: start.call.clone(),
            root: parent.into(),
            companion: start.companion.clone(),
            trace: None,
            is_trace_given: false,
        };
        Self::created(start.session.as_str(), Some(parent))
    }

    fn created(id: &str, parent: Option<ParentRef>) -> Self {
        let mut log = Self { session: Session::new(SessionId::from(id)), runs: 0 };
        let (agent, tags, state) = ("clerk".into(), BTreeMap::new(), Json::empty_object());
        log.put(&Event::SessionCreated { agent, tags, state, parent });
        log
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn put(&mut self, event: &Event) {
        let run = match event {
            Event::RunStarted { run, .. } => Some(run.clone()),
            _ => self.session.current_run().map(|run| run.id.clone()),
        };
        self.session.apply(event, run.as_ref()).unwrap();
    }

    /// Starts a run.
    pub(crate) fn start(&mut self, trigger: Trigger) {
        self.runs += 1;
        self.put(&Event::RunStarted {
            run: RunId::from(format!("r{}", self.runs)),
            after: self.session.last_run().map(|run| run.id.clone()),
            trigger,
            runtime: "test".into(),
            stream_from: 0,
            budget: None,
            clears: None,
            trace: None,
        });
    }

    /// Starts a turn with a message.
    pub(crate) fn say(&mut self, text: &str) {
        self.start(if self.runs == 0 { Trigger::Execute } else { Trigger::Continue });
        self.put(&Event::UserMessages { messages: vec![UserMessage::new(text)] });
    }

    /// Records a reply with a text, if it is not empty, and calls, each with the name of its tool.
    pub(crate) fn reply(&mut self, text: &str, tools: &[&str]) {
        let message = AssistantMessage {
            content: Some(text.to_owned()).filter(|text| !text.is_empty()),
            ..AssistantMessage::default()
        };
        self.reply_with(message, tools);
    }

    /// Records a reply with reasoning.
    pub(crate) fn reason(&mut self, thinking: &str, text: &str) {
        let (content, thinking) = (Some(text.to_owned()), Some(Thinking::new(thinking)));
        self.reply_with(AssistantMessage { content, thinking, ..AssistantMessage::default() }, &[]);
    }

    fn reply_with(&mut self, message: AssistantMessage, tools: &[&str]) {
        let step = self.session.last_step() + 1;
        let tool_calls = tools.iter().enumerate().map(|(index, tool)| ToolCall {
            id: CallId::new(step, index),
            provider_id: None,
            name: Arc::from(*tool),
            arguments: Arguments::from(json!({ "city": "Graz" })),
        });
        let message = AssistantMessage { tool_calls: tool_calls.collect(), ..message };
        let reply = json!({ "step": step, "message": message, "should_stop": tools.is_empty() });
        let reply: ModelReply = serde_json::from_value(reply).unwrap();
        self.put(&Event::from(ModelReply { usage: Usage::new(10, 2), ..reply }));
    }

    /// Records the start of a sub-agent or companion.
    pub(crate) fn start_child(&mut self, start: &ChildStart) {
        self.put(&Event::ChildStarted(Arc::new(start.clone())));
    }

    /// Records the result of a call.
    pub(crate) fn finish(&mut self, call: &str, result: Value) {
        let outcome = ToolOutcome::Success(result.into());
        let finish = ToolFinish::without_run(call.into(), outcome);
        self.put(&Event::from(ToolFinish { attempts: 1, ..finish }));
    }

    pub(crate) fn close_step(&mut self) {
        self.put(&Event::StepClosed { step: self.session.last_step() });
    }

    /// Records the end of the turn.
    pub(crate) fn complete(&mut self) {
        self.put(&Event::RunEnded { outcome: RunOutcome::Completed { output: None } });
    }

    /// Records that the run waits for calls and children.
    pub(crate) fn suspend(&mut self, calls: &[PendingCall], children: &[ChildStart]) {
        let mut on = Suspension::default();
        on.step = self.session.last_step();
        on.calls = calls.iter().cloned().map(Arc::new).collect();
        on.children = children.iter().cloned().map(Arc::new).collect();
        self.put(&Event::RunEnded { outcome: RunOutcome::Suspended { on: Arc::new(on) } });
    }

    /// Records an answer to a call.
    pub(crate) fn answer(&mut self, call: &str, answer: Answer) {
        let request = RequestId::from(format!("answer to {call}"));
        self.put(&Event::Submitted { request, call: call.into(), answer, by: None, trace: None });
    }
}

/// Returns a session with this many turns. Each has a step with this many calls, and then a reply.
pub(crate) fn long_session(turns: u32, calls: usize) -> Log {
    let mut log = Log::new(super::SESSION);
    for _ in 0..turns {
        log.say("Hello");
        log.reply("I look.", &vec!["weather"; calls]);
        let step = log.session().last_step();
        for call in 0..calls {
            log.finish(&format!("{step}.{call}"), "rain".into());
        }
        log.close_step();
        log.reply("Rain.", &[]);
        log.close_step();
        log.complete();
    }
    log
}

/// Returns a pending call with a deadline and the schema of a city.
pub(crate) fn pending(call: &str, tool: &str, kind: PendingKind) -> PendingCall {
    let pending = json!({
        "call": call,
        "tool": tool,
        "kind": kind,
        "digest": "9f2c",
        "deadline": Timestamp(1_700_000_000_000),
        "schema": { "type": "object", "required": ["city"] },
    });
    serde_json::from_value(pending).unwrap()
}

/// Returns the start of a sub-agent, or of a companion with this name.
pub(crate) fn child_start(call: &str, session: &str, companion: Option<&str>) -> ChildStart {
    let companion = companion.map(|name| {
        let (name, mode) = (name.to_owned(), CompanionMode::NonBlocking);
        CompanionRef { name, mode }
    });
    let (call, session, agent) = (call.into(), session.into(), "poet".into());
    ChildStart { call, session, agent, companion, allowance: None }
}
