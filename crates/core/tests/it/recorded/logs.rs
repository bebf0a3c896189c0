//! The recorded sessions, driven step by step.

use std::collections::BTreeMap;

use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::event::{
    Event, ModelReply, RecordedEvent, RunOutcome, SCHEMA, ToolFinish, ToolOutcome, Trigger,
};
use helix_agents_core::id::{CallId, RunId};
use helix_agents_core::llm::LlmResponse;
use helix_agents_core::message::{Arguments, Thinking, UserMessage};
use helix_agents_core::session::Session;
use helix_agents_core::state::Patch;
use helix_agents_core::step::{Action, ParsedToolCall, StepIterator, StepResult, StopReason};
use helix_agents_core::tool::{EffectClass, Tool, ToolContext};
use helix_agents_core::usage::Usage;
use serde_json::{Value, json};

/// Drives the step iterator and records its events.
pub(super) struct Recorder {
    iterator: StepIterator,
    events: Vec<RecordedEvent>,
    run: Option<RunId>,
    schema: u16,
}

impl Recorder {
    fn new(agent: &AnyAgent) -> Self {
        let iterator = StepIterator::new(AnyAgent::clone(agent), Session::new("s".into()));
        let mut recorder = Self { iterator, events: Vec::new(), run: None, schema: SCHEMA };
        recorder.take(Event::SessionCreated {
            agent: agent.name().as_ref().into(),
            tags: BTreeMap::from([("customer".to_owned(), "42".to_owned())]),
            state: json!({"notes": []}).into(),
            parent: None,
        });
        recorder
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string_pretty(&self.events).unwrap() + "\n"
    }

    fn take(&mut self, event: Event) {
        let seq = self.events.len() as u64 + 1;
        let at = Timestamp(1_700_000_000_000 + 250 * i64::try_from(seq).unwrap());
        // Requests and results of other runs are recorded with `take_as`.
        let recorded = RecordedEvent { seq, at, run: self.run.clone(), schema: self.schema, event };
        let mut session = self.iterator.session().clone();
        session.apply_recorded(&recorded).unwrap();
        self.iterator = StepIterator::new(AnyAgent::clone(self.iterator.agent()), session);
        self.events.push(recorded);
    }

    fn take_as(&mut self, run: Option<&str>, event: Event) {
        let own = std::mem::replace(&mut self.run, run.map(RunId::from));
        self.take(event);
        self.run = own;
    }

    fn start(&mut self, run: &str, trigger: Trigger) {
        let after = self.run.replace(RunId::from(run));
        let (run, stream_from) = (RunId::from(run), self.events.len() as u64);
        self.take(Event::RunStarted {
            run,
            after,
            trigger,
            runtime: "local".into(),
            stream_from,
            budget: None,
            clears: None,
            trace: None,
        });
    }

    fn say(&mut self, text: &str) {
        self.take(Event::UserMessages { messages: vec![UserMessage::new(text)] });
    }

    /// Records the pending decisions, including the end of the run.
    fn decide(&mut self) {
        let decided = self.iterator.clone().decide().unwrap();
        for event in decided {
            self.take(event);
        }
        if let Action::End(outcome) = self.iterator.next() {
            self.take(Event::RunEnded { outcome });
        }
    }

    fn reply(&mut self, result: StepResult) {
        let usage = Usage::new(120, 30).with_cached_tokens(64).with_reasoning_tokens(8);
        let mut response = LlmResponse::new(result, usage);
        response.model = Some("model-1".into());
        response.raw_stop_reason = Some("unheard_of".to_owned());
        let step = self.iterator.session().last_step() + 1;
        self.take(Event::from(ModelReply::from_response(step, response, 900)));
        self.decide();
    }

    fn finished(&mut self, finish: ToolFinish) {
        self.take(Event::from(finish));
        self.decide();
    }
}

fn base() -> helix_agents_core::agent::AgentBuilder {
    let tool = |name| {
        Tool::dynamic(name, "d", json!({"type": "object"}), |input: Value, _: ToolContext| async {
            Ok(input)
        })
    };
    let pay = tool("pay").effect(EffectClass::AtMostOnce);
    Agent::builder("recorded").system_prompt("p").tool(tool("search")).tool(pay)
}

fn typed() -> AnyAgent {
    let schema = json!({
        "type": "object",
        "properties": {"result": {"type": "string"}},
        "required": ["result"],
    });
    base().output_schema(schema).build().unwrap().erased()
}

fn started(agent: &AnyAgent) -> Recorder {
    let mut recorder = Recorder::new(agent);
    recorder.start("r1", Trigger::Execute);
    recorder.say("Pay the bill.");
    recorder
}

fn text(content: &str) -> StepResult {
    StepResult::Text {
        content: content.to_owned(),
        thinking: None,
        should_stop: true,
        stop_reason: Some(StopReason::EndTurn),
    }
}

fn calls(calls: &[(&str, &str)]) -> StepResult {
    let parsed = |(index, (name, arguments)): (usize, &(&str, &str))| {
        ParsedToolCall::new(format!("call_{index}").as_str(), *name, Arguments::parse(arguments))
    };
    let mut thinking = Thinking::new("Hm.");
    thinking.signature = Some("sig".to_owned());
    StepResult::ToolCalls {
        content: Some("One moment.".to_owned()),
        tool_calls: calls.iter().enumerate().map(parsed).collect(),
        sub_agent_calls: Vec::new(),
        thinking: Some(thinking),
        stop_reason: Some(StopReason::ToolUse),
    }
}

fn noted(call: &str, note: &str) -> ToolFinish {
    let state_patch = Patch::between(&json!({"notes": []}), &json!({"notes": [note]}));
    let outcome = ToolOutcome::Success(json!({"found": note}).into());
    ToolFinish {
        state_patch,
        took_ms: 40,
        attempts: 1,
        input: Some(json!({"query": note}).into()),
        ..ToolFinish::without_run(CallId::from(call), outcome)
    }
}

/// Parallel tools whose results arrive in another order and of which one failed, then the answer.
pub(super) fn answer() -> Recorder {
    let mut recorder = started(&base().build().unwrap().erased());
    recorder.reply(calls(&[("search", r#"{"query": "bill"}"#), ("search", "{}"), ("find", "{")]));
    recorder.finished(noted("1.1", "second"));
    let mut failed = noted("1.0", "first");
    failed.outcome = ToolOutcome::Error(ErrorRecord::new(ErrorCode::ToolFailed, "no index"));
    recorder.finished(failed);
    recorder.reply(text("It is paid."));
    recorder
}

/// An invalid output, its correction, a valid output, and a second turn.
pub(super) fn finish() -> Recorder {
    let mut recorder = started(&typed());
    recorder.reply(calls(&[("__finish__", r#"{"result": 1}"#)]));
    recorder.reply(calls(&[("search", "{}"), ("__finish__", r#"{"result": "paid"}"#)]));
    recorder.start("r2", Trigger::Continue);
    recorder.say("And the other one?");
    recorder.reply(StepResult::StructuredOutput {
        output: json!({"result": "paid too"}).into(),
        thinking: None,
        stop_reason: Some(StopReason::EndTurn),
    });
    recorder
}

/// A payment with unknown outcome after a takeover, a late result of the old owner, and an abort.
pub(super) fn takeover() -> Recorder {
    let mut recorder = started(&base().build().unwrap().erased());
    recorder.reply(calls(&[("pay", r#"{"cents": 1250}"#), ("search", "{}"), ("pay", "{}")]));
    for call in ["1.0", "1.2"] {
        let (call, timeout_ms) = (CallId::from(call), Some(60_000));
        recorder.take(Event::ToolStarted { call, attempt: 1, timeout_ms });
    }
    recorder.start("r2", Trigger::Recover);
    recorder.take_as(Some("r1"), Event::from(noted("1.0", "late")));
    let (request, run) = ("req_1".into(), "r2".into());
    let reason = Some("wrong bill".to_owned());
    recorder.take_as(None, Event::AbortRequested { request, run, reason });
    recorder.decide();
    recorder
}

/// A model call that was cut off, recorded usage, a hook's state change, an interrupt, a resume,
/// and a failure.
pub(super) fn requests() -> Recorder {
    let mut recorder = started(&base().build().unwrap().erased());
    recorder.reply(StepResult::Error {
        error: ErrorRecord::new(ErrorCode::ProviderStreamCut, "the connection was cut"),
        should_stop: false,
        stop_reason: Some(StopReason::Error),
    });
    let (request, run) = ("req_1".into(), "r1".into());
    recorder.take_as(None, Event::InterruptRequested { request, run, reason: None });
    recorder.decide();
    recorder.start("r2", Trigger::Resume);
    let patch = Patch::between(&json!({"notes": []}), &json!({"notes": [], "seen": true}));
    recorder.take(Event::StateChanged { patch, by: "after_llm_call".to_owned() });
    let (source_type, source_name) = ("tool".to_owned(), "pages".to_owned());
    recorder.take(Event::UsageRecorded {
        source_type,
        source_name,
        amount: 2.5,
        call: None,
        success: true,
    });
    recorder.reply(StepResult::Text {
        content: "I".to_owned(),
        thinking: None,
        should_stop: true,
        stop_reason: Some(StopReason::Unknown),
    });
    recorder
}

/// An imported log whose `__finish__` and another call have no result, reopened.
pub(super) fn imported() -> Recorder {
    let mut recorder = imported_log();
    recorder.schema = SCHEMA;
    recorder.run = Some("r2".into());
    let results = recorder.iterator.session().unpaired_calls().map(|call| call.id.clone());
    let healed = |call: CallId| match call.as_str() {
        "1.0" => {
            let error = ErrorRecord::new(ErrorCode::ToolNotRun, "not run: imported");
            (call, ToolOutcome::Error(error))
        }
        _ => (call, ToolOutcome::Acknowledged),
    };
    let results: Vec<_> = results.map(healed).collect();
    recorder.take(Event::HistoryHealed { results });
    recorder.run = Some("r1".into());
    recorder.start("r2", Trigger::Continue);
    recorder.say("And now?");
    recorder.reply(calls(&[("__finish__", r#"{"result": "later"}"#)]));
    recorder
}

fn imported_log() -> Recorder {
    let mut recorder = Recorder::new(&typed());
    recorder.schema = 0;
    recorder.start("r1", Trigger::Execute);
    recorder.say("Pay the bill.");
    for (step, result) in [
        (1, calls(&[("search", "{}"), ("search", "{}")])),
        (2, calls(&[("__finish__", r#"{"result": "paid"}"#)])),
    ] {
        let response = LlmResponse::new(result, Usage::default());
        recorder.take(Event::from(ModelReply::from_response(step, response, 0)));
        if step == 1 {
            recorder.take(Event::from(noted("1.1", "bill")));
        }
        recorder.take(Event::StepClosed { step });
    }
    let output = Some(json!({"result": "paid"}).into());
    recorder.take(Event::RunEnded { outcome: RunOutcome::Completed { output } });
    recorder
}
