//! A world for journals: a store with faults, a clock that does not wait, ids that count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::clock::{Clock, IdSource, Timestamp};
use helix_agents_core::error::Result;
use helix_agents_core::event::{Event, ModelReply, RecordedEvent, ToolFinish, ToolOutcome};
use helix_agents_core::executor::Input;
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::llm::LlmResponse;
use helix_agents_core::session::{
    Durability, Journal, JournalConfig, Outside, Session, StartOutcome, StartRun, execute_events,
    load, load_events, resume_events,
};
use helix_agents_core::step::{ParsedToolCall, StepResult, StopReason};
use helix_agents_core::store::{NewSession, RetryingStore, StateStore, StoredAppend};
use helix_agents_core::tool::{EffectClass, Tool, ToolContext};
use helix_agents_core::usage::Usage;
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::faults::FaultStore;
use serde_json::{Value, json};

/// What the tests' sessions live in.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) faults: FaultStore,
    pub(crate) clock: Arc<NoWait>,
    pub(crate) lease: Duration,
    pub(crate) durability: Durability,
    pub(crate) counter: Arc<Counting>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            faults: FaultStore::new(Arc::new(MemoryStore::new())),
            clock: Arc::default(),
            lease: Duration::from_secs(60),
            durability: Durability::PerEffect,
            counter: Arc::default(),
        }
    }

    pub(crate) fn parts(&self) -> JournalConfig {
        JournalConfig {
            store: Arc::new(self.patient()),
            ids: self.ids(),
            lease: self.lease,
            durability: self.durability,
        }
    }

    /// What requests from outside are appended with.
    pub(crate) fn outside(&self) -> Outside<'_> {
        Outside { store: &self.faults, ids: &*self.counter, folds: None }
    }

    /// The store, as a runtime would wrap it.
    pub(crate) fn patient(&self) -> RetryingStore {
        let (store, clock) = (Arc::new(self.faults.clone()), Arc::<NoWait>::clone(&self.clock));
        RetryingStore::new(store, clock, self.ids(), Duration::from_secs(10))
    }

    pub(crate) fn ids(&self) -> Arc<dyn IdSource> {
        Arc::<Counting>::clone(&self.counter)
    }

    /// A journal of that run on the session as it stands now.
    pub(crate) async fn journal(&self, run: &str) -> Journal {
        let session = self.session().await;
        Journal::new(self.parts(), agent(), session, RunId::from(run))
    }

    /// A journal whose run `r1` has created the session `s`.
    pub(crate) async fn begun(&self) -> Journal {
        let session = Session::new(id());
        let events = first_events(&session, "r1");
        let mut journal = Journal::new(self.parts(), agent(), session, RunId::from("r1"));
        journal.create(new_session(), events).await.unwrap();
        journal
    }

    /// The same, and its model has answered.
    pub(crate) async fn answered(&self, result: StepResult) -> Journal {
        let mut journal = self.begun().await;
        journal.stage(&[reply(1, result)]).unwrap();
        journal.commit().await.unwrap();
        journal
    }

    /// A journal whose run has taken over.
    pub(crate) async fn taken_over(&self, run: &str) -> Journal {
        self.taken_over_with(begin(run)).await
    }

    /// The same, for a run that starts so.
    pub(crate) async fn taken_over_with(&self, begin: StartRun) -> Journal {
        let session = self.session().await;
        let after = session.last_run().map(|run| run.id.clone());
        let events = resume_events(&session, &agent(), &begin, after.as_ref(), None).unwrap();
        let mut journal = Journal::new(self.parts(), agent(), session, begin.run);
        assert_eq!(journal.start(events).await.unwrap(), StartOutcome::Started);
        journal
    }

    pub(crate) async fn session(&self) -> Session {
        load(&self.faults, &id()).await.unwrap()
    }

    pub(crate) async fn appends(&self) -> Vec<StoredAppend> {
        self.faults.read_log(&id(), 0, u32::MAX).await.unwrap()
    }

    /// The names of the log's events, one word list per append.
    pub(crate) async fn log(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for append in self.appends().await {
            let events = helix_agents_core::event::decode(&id(), &append).unwrap();
            lines.push(names(events.iter().map(|recorded| &recorded.event)));
        }
        lines
    }

    pub(crate) async fn events(&self) -> Vec<RecordedEvent> {
        load_events(&self.faults, &id(), 0).await.unwrap()
    }
}

/// The names of events, and of calls that they are about.
pub(crate) fn names<'a>(events: impl IntoIterator<Item = &'a Event>) -> String {
    let name = |event: &Event| match event {
        Event::ToolFinished(finish) => format!("tool_finished {}", finish.call),
        Event::ToolStarted { call, .. } => format!("tool_started {call}"),
        event => event.name().to_owned(),
    };
    events.into_iter().map(name).collect::<Vec<_>>().join(", ")
}

pub(crate) fn id() -> SessionId {
    SessionId::from("s")
}

/// An agent with a tool that reads, one that must not run twice, and no output type.
pub(crate) fn agent() -> AnyAgent {
    let tool = |name| {
        Tool::dynamic(name, "d", json!({"type": "object"}), |input: Value, _: ToolContext| async {
            Ok(input)
        })
    };
    let pay = tool("pay").effect(EffectClass::AtMostOnce);
    Agent::builder("tester")
        .system_prompt("p")
        .tool(tool("search"))
        .tool(pay)
        .build()
        .unwrap()
        .erased()
}

pub(crate) fn begin(run: &str) -> StartRun {
    StartRun::new(RunId::from(run), "hand", 0)
}

pub(crate) fn new_session() -> NewSession {
    NewSession { agent: "tester".into(), root: id(), parent: None, tags: BTreeMap::new() }
}

pub(crate) fn first_events(session: &Session, run: &str) -> Vec<Event> {
    let input = Input::from("go");
    execute_events(session, &agent(), &begin(run), &input, &BTreeMap::new(), false).unwrap()
}

pub(crate) fn text(content: &str) -> StepResult {
    StepResult::Text {
        content: content.to_owned(),
        thinking: None,
        should_stop: true,
        stop_reason: Some(StopReason::EndTurn),
    }
}

pub(crate) fn calls(names: &[&str]) -> StepResult {
    let calls = names.iter().map(|name| ParsedToolCall::new("p", *name, json!({}).into()));
    StepResult::ToolCalls {
        content: None,
        tool_calls: calls.collect(),
        sub_agent_calls: Vec::new(),
        thinking: None,
        stop_reason: Some(StopReason::ToolUse),
    }
}

pub(crate) fn reply(step: u32, result: StepResult) -> Event {
    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    let response = LlmResponse { result, usage, model: None, raw_stop_reason: None };
    Event::from(ModelReply::from_response(step, response, 0))
}

pub(crate) fn result(call: &str, value: Value) -> Event {
    let outcome = ToolOutcome::Success(value.into());
    Event::from(ToolFinish { attempts: 1, ..ToolFinish::without_run(CallId::from(call), outcome) })
}

pub(crate) fn started(call: &str) -> Event {
    Event::ToolStarted { call: CallId::from(call), attempt: 1, timeout_ms: None }
}

/// A clock that stands still and never waits, but counts how long it should have.
#[derive(Debug, Default)]
pub(crate) struct NoWait {
    pub(crate) waits: AtomicU64,
    passed_ms: AtomicU64,
}

#[async_trait]
impl Clock for NoWait {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.passed_ms.load(Ordering::Relaxed))
    }

    async fn sleep(&self, duration: Duration) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        let millis = u64::try_from(duration.as_millis()).unwrap();
        self.passed_ms.fetch_add(millis, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counting(AtomicU64);

impl From<u64> for Counting {
    fn from(first: u64) -> Self {
        Self(AtomicU64::new(first))
    }
}

impl IdSource for Counting {
    fn next(&self) -> u128 {
        self.0.fetch_add(1, Ordering::Relaxed).into()
    }
}

/// Unwraps the error of what must not work.
#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().code().as_str().to_owned()
}
