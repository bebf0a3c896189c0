//! The environment of journal tests: a store with fault injection, a clock that does not wait, and
//! counted ids.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_conformance::faults::FaultStore;
use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::clock::{Clock, IdSource, Timestamp};
use helix_agents_core::error::Result;
use helix_agents_core::event::{Event, ModelReply, RecordedEvent, ToolFinish, ToolOutcome};
use helix_agents_core::executor::Input;
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::llm::LlmResponse;
use helix_agents_core::observer::{LogObserver, Observers};
use helix_agents_core::session::{
    Durability, Journal, JournalConfig, RequestContext, Session, StartOutcome, StartRun,
    execute_events, load, load_events, resume_events,
};
use helix_agents_core::step::{ParsedToolCall, StepResult, StopReason};
use helix_agents_core::store::{NewSession, RetryingStore, StateStore, StoredAppend};
use helix_agents_core::tool::{EffectClass, Tool, ToolContext};
use helix_agents_core::usage::Usage;
use helix_agents_store_memory::MemoryStore;
use serde_json::{Value, json};

/// The environment of a test.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) faults: FaultStore,
    pub(crate) clock: Arc<NoWait>,
    pub(crate) lease: Duration,
    pub(crate) durability: Durability,
    pub(crate) counter: Arc<Counting>,
    pub(crate) observers: Vec<Arc<dyn LogObserver>>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            faults: FaultStore::new(Arc::new(MemoryStore::new())),
            clock: Arc::default(),
            lease: Duration::from_secs(60),
            durability: Durability::PerEffect,
            counter: Arc::default(),
            observers: Vec::new(),
        }
    }

    pub(crate) fn journal_config(&self) -> JournalConfig {
        JournalConfig {
            store: Arc::new(self.retrying_store()),
            ids: self.ids(),
            lease: self.lease,
            durability: self.durability,
            observers: Observers::new(self.observers.clone()),
        }
    }

    /// Returns the access for requests from outside a run.
    pub(crate) fn request_context(&self) -> RequestContext<'_> {
        RequestContext::new(&self.faults, &*self.counter)
    }

    /// Returns the store, wrapped as a runtime would wrap it.
    pub(crate) fn retrying_store(&self) -> RetryingStore {
        let (store, clock) = (Arc::new(self.faults.clone()), Arc::<NoWait>::clone(&self.clock));
        RetryingStore::new(store, clock, self.ids(), Duration::from_secs(10))
    }

    pub(crate) fn ids(&self) -> Arc<dyn IdSource> {
        Arc::<Counting>::clone(&self.counter)
    }

    /// Returns a journal of that run on the current session.
    pub(crate) async fn journal(&self, run: &str) -> Journal {
        let session = self.session().await;
        Journal::new(self.journal_config(), agent(), session, RunId::from(run))
    }

    /// Creates the session `s` with the run `r1` and returns the run's journal.
    pub(crate) async fn create(&self) -> Journal {
        let session = Session::new(id());
        let events = first_events(&session, "r1");
        let mut journal = Journal::new(self.journal_config(), agent(), session, RunId::from("r1"));
        journal.create(new_session(), events).await.unwrap();
        journal
    }

    /// Creates the session and appends a reply of the model.
    pub(crate) async fn answered(&self, result: StepResult) -> Journal {
        let mut journal = self.create().await;
        journal.stage(&[reply(1, result)]).unwrap();
        journal.commit().await.unwrap();
        journal
    }

    /// Lets the run take over and returns its journal.
    pub(crate) async fn taken_over(&self, run: &str) -> Journal {
        self.taken_over_with(start_run(run)).await
    }

    /// Lets a run with this description take over and returns its journal.
    pub(crate) async fn taken_over_with(&self, start: StartRun) -> Journal {
        let session = self.session().await;
        let after = session.last_run().map(|run| run.id.clone());
        let events = resume_events(&session, &agent(), &start, after.as_ref(), None).unwrap();
        let mut journal = Journal::new(self.journal_config(), agent(), session, start.run);
        assert_eq!(journal.start(events).await.unwrap(), StartOutcome::Started);
        journal
    }

    pub(crate) async fn session(&self) -> Session {
        load(&self.faults, &id()).await.unwrap()
    }

    pub(crate) async fn appends(&self) -> Vec<StoredAppend> {
        self.faults.read_log(&id(), 0, u32::MAX).await.unwrap()
    }

    /// Returns the names of the log's events, one string per append.
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

/// Returns the names of events, with the calls of tool events.
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

/// Returns an agent with an ordinary tool, an at-most-once tool, and a client tool that waits one
/// second for its result, without an output type.
pub(crate) fn agent() -> AnyAgent {
    let tool = |name| {
        Tool::dynamic(name, "d", json!({"type": "object"}), |input: Value, _: ToolContext| async {
            Ok(input)
        })
    };
    let pay = tool("pay").effect(EffectClass::AtMostOnce);
    let sign = Tool::client_dynamic("sign", "d", json!({"type": "object"}));
    Agent::builder("tester")
        .system_prompt("p")
        .tool(tool("search"))
        .tool(pay)
        .tool(sign.deadline(Duration::from_secs(1)))
        .build()
        .unwrap()
        .erased()
}

pub(crate) fn start_run(run: &str) -> StartRun {
    StartRun::new(RunId::from(run), "hand", 0)
}

pub(crate) fn new_session() -> NewSession {
    NewSession { agent: "tester".into(), root: id(), parent: None, tags: BTreeMap::new() }
}

pub(crate) fn first_events(session: &Session, run: &str) -> Vec<Event> {
    let input = Input::from("go");
    execute_events(session, &agent(), &start_run(run), &input, &BTreeMap::new(), false).unwrap()
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
    let usage = Usage::new(10, 5);
    let response = LlmResponse::new(result, usage);
    Event::from(ModelReply::from_response(step, response, 0))
}

pub(crate) fn result(call: &str, value: Value) -> Event {
    let outcome = ToolOutcome::Success(value.into());
    Event::from(ToolFinish { attempts: 1, ..ToolFinish::without_run(CallId::from(call), outcome) })
}

pub(crate) fn started(call: &str) -> Event {
    Event::ToolStarted { call: CallId::from(call), attempt: 1, timeout_ms: None }
}

/// A clock that never waits, but counts the waits and the time that they would have taken.
#[derive(Debug, Default)]
pub(crate) struct NoWait {
    pub(crate) waits: AtomicU64,
    /// The current time, in milliseconds. Only tests change it.
    pub(crate) now_ms: AtomicI64,
    passed_ms: AtomicU64,
}

#[async_trait]
impl Clock for NoWait {
    fn now(&self) -> Timestamp {
        Timestamp(self.now_ms.load(Ordering::Relaxed))
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

/// Returns the error code of a result that must be an error.
#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().code().as_str().to_owned()
}
