//! An engine that does nothing by itself. A test executes its runs or abandons them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::agent::{Agent, AgentRegistry, AnyAgent};
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions, RunHandle};
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::{RunStatus, Session, load};
use helix_agents_core::store::{Head, StateStore as _};
use helix_agents_runtime::{
    Engine, LiveRun, NextWork, RunRef, Runtime, Settings, StartedRun, WorkItem,
};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};
use helix_agents_testkit::trees::Redelivery;
use serde_json::json;
use tokio::sync::watch;

use crate::in_work_items;

/// The root session.
pub(crate) const S: &str = "story";

/// The engine, with the runs handed to it and its configured responses.
#[derive(Debug, Default)]
pub(crate) struct ByHand {
    /// The runs that were handed to the engine.
    pub(crate) started: watch::Sender<Vec<RunRef>>,
    /// `true` if the engine claims to have remote workers.
    pub(crate) has_workers: bool,
    /// The gate that the engine passes before it reports that a run was stopped. `None`: it reports no run as stopped.
    pub(crate) stopped: Option<Gate>,
    /// The gate that the engine passes before it reports that it recovers a run. `None`: it recovers no run.
    pub(crate) recovers: Option<Gate>,
}

#[async_trait]
impl Engine for ByHand {
    fn kind(&self) -> &'static str {
        "by-hand"
    }

    fn is_in_process(&self) -> bool {
        !self.has_workers
    }

    async fn start(&self, started: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let run_ref = started.in_work_items();
        self.started.send_modify(|runs| runs.push(run_ref));
        Ok(None)
    }

    async fn stop_reason(&self, _: &RunRef) -> Option<Error> {
        self.stopped.as_ref()?.pass().await;
        Some(Error::new(ErrorCode::Cancelled, "as the engine says"))
    }

    async fn recovers(&self, _: &RunRef) -> Result<bool> {
        let Some(gate) = &self.recovers else { return Ok(false) };
        gate.pass().await;
        Ok(true)
    }
}

/// A runtime on this engine.
#[derive(Debug)]
pub(crate) struct Scene {
    store: MemoryStore,
    engine: Arc<ByHand>,
    pub(crate) runtime: Runtime,
}

impl Scene {
    /// Creates a scene whose registry contains these agents.
    pub(crate) fn new(
        engine: ByHand,
        llm: impl LlmAdapter,
        agents: impl IntoIterator<Item = AnyAgent>,
    ) -> Self {
        let (store, engine) = (MemoryStore::new(), Arc::new(engine));
        let registry = AgentRegistry::default();
        agents.into_iter().for_each(|agent| registry.replace_erased(agent));
        let settings = Settings {
            store: Some(Arc::new(store.clone())),
            streams: Some(Arc::new(store.clone())),
            llm: Some(Arc::new(llm)),
            registry,
            lease: Duration::from_secs(60),
            ..Settings::default()
        };
        let context = settings.context().unwrap();
        let runtime = Runtime::new(context, Arc::clone(&engine)).erased();
        Self { store, engine, runtime }
    }

    /// Starts a run of the root session.
    pub(crate) async fn start(&self, agent: AnyAgent) -> (RunHandle, RunRef) {
        let options = ExecuteOptions::default().session(S);
        let handle = self.runtime.execute(agent, "go".into(), options).await.unwrap();
        (handle, self.started().pop().unwrap())
    }

    /// Resumes the root session.
    pub(crate) async fn resume(&self, agent: AnyAgent) -> RunRef {
        self.runtime.resume(agent, &S.into(), ResumeOptions::default()).await.unwrap();
        self.started().pop().unwrap()
    }

    /// Returns the runs that were handed to the engine, in order.
    pub(crate) fn started(&self) -> Vec<RunRef> {
        self.engine.started.borrow().clone()
    }

    /// Waits until the engine was handed the run with this index, and returns it.
    pub(crate) async fn started_as(&self, index: usize) -> RunRef {
        let mut receiver = self.engine.started.subscribe();
        let runs = within(receiver.wait_for(|runs| runs.len() > index)).await.unwrap();
        runs.get(index).cloned().unwrap()
    }

    /// Executes a run to its end.
    pub(crate) async fn drive(&self, run_ref: &RunRef) {
        within(in_work_items::drive(&self.runtime, run_ref, Redelivery::Never)).await.unwrap();
    }

    /// Executes a run up to its concurrent calls.
    pub(crate) async fn up_to_calls(&self, run_ref: &RunRef) -> NextWork {
        let mut item = WorkItem::Open;
        loop {
            match self.runtime.perform(run_ref, &item, true).await.unwrap() {
                NextWork::WorkItem(next) => item = next,
                next => return next,
            }
        }
    }

    /// Abandons a run: releases its lease without ending it.
    pub(crate) async fn abandon(&self, run_ref: &RunRef) {
        self.runtime.release_run(run_ref).await;
    }

    pub(crate) async fn head(&self, session: &SessionId) -> Head {
        self.store.head(session).await.unwrap().unwrap()
    }

    pub(crate) async fn fold(&self, session: &SessionId) -> Session {
        load(&self.store, session).await.unwrap()
    }

    /// Returns the statuses of a session's runs, in order.
    pub(crate) async fn runs(&self, session: &SessionId) -> Vec<RunStatus> {
        self.fold(session).await.runs().map(|run| run.status).collect()
    }

    /// Waits until the store's clock has passed this time.
    pub(crate) async fn until_past(&self, moment: Timestamp) {
        let passes = async {
            while self.head(&S.into()).await.read_at <= moment {
                tokio::task::yield_now().await;
            }
        };
        within(passes).await;
    }
}

/// Returns an agent that answers immediately.
pub(crate) fn teller() -> AnyAgent {
    let agent = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    agent.build().unwrap().erased()
}

/// Returns the model of the teller.
pub(crate) fn teller_model() -> ScriptedLlm {
    ScriptedLlm::new([Reply::text("So.")])
}

/// Returns a helper agent that answers `true`.
pub(crate) fn helps() -> Agent<bool> {
    let helper = Agent::builder("helper").description("Helps.").system_prompt("You help.");
    helper.model("scripted").output().build().unwrap()
}

/// Returns the type-erased helper agent.
pub(crate) fn helper() -> AnyAgent {
    helps().erased()
}

/// Returns an agent that calls the helper first.
pub(crate) fn boss() -> AnyAgent {
    let boss = Agent::builder("boss").system_prompt("You ask.").model("scripted");
    boss.sub_agent(&helps()).build().unwrap().erased()
}

/// Returns the model of the boss and the helper.
pub(crate) fn boss_model() -> RoutingScriptedLlm {
    let call = Reply::tool_call("subagent__helper", json!({ "message": "help" }));
    RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new([call, Reply::text("So.")]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!(true))]))
}
