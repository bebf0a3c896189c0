//! An engine that does nothing by itself: a test carries its runs out, or leaves them lying.

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
    Engine, LiveRun, Next, RunRef, Runtime, Settings, StartedRun, WorkItem,
};
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::gate::{Gate, within};
use helix_agents_testkit::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};
use helix_agents_testkit::trees::Redelivery;
use serde_json::json;
use tokio::sync::watch;

use crate::in_parts;

/// The session at the top.
pub(crate) const S: &str = "story";

/// The engine: what it was handed, and what it says if it is asked.
#[derive(Debug, Default)]
pub(crate) struct ByHand {
    /// The runs that it was handed.
    pub(crate) begun: watch::Sender<Vec<RunRef>>,
    /// Whether any worker may carry out what another one began.
    pub(crate) has_workers: bool,
    /// Where it stands before it says that a run was stopped. Without, it says so of none.
    pub(crate) stopped: Option<Gate>,
    /// Where it stands before it says that it goes on with a run. Without, it goes on with none.
    pub(crate) goes_on: Option<Gate>,
}

#[async_trait]
impl Engine for ByHand {
    fn kind(&self) -> &'static str {
        "by-hand"
    }

    fn is_in_process(&self) -> bool {
        !self.has_workers
    }

    async fn drive(&self, begun: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let of = begun.in_parts();
        self.begun.send_modify(|begun| begun.push(of));
        Ok(None)
    }

    async fn stopped(&self, _: &RunRef) -> Option<Error> {
        self.stopped.as_ref()?.pass().await;
        Some(Error::new(ErrorCode::Cancelled, "as the engine says"))
    }

    async fn goes_on(&self, _: &RunRef) -> Result<bool> {
        let Some(gate) = &self.goes_on else { return Ok(false) };
        gate.pass().await;
        Ok(true)
    }
}

/// A runtime on such an engine.
#[derive(Debug)]
pub(crate) struct Scene {
    store: MemoryStore,
    engine: Arc<ByHand>,
    pub(crate) runtime: Runtime,
}

impl Scene {
    /// A scene whose runtime knows these agents by their names.
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
        let parts = settings.context().unwrap();
        let runtime = Runtime::new(parts, Arc::<ByHand>::clone(&engine));
        Self { store, engine, runtime }
    }

    /// Begins the story.
    pub(crate) async fn begin(&self, agent: AnyAgent) -> (RunHandle, RunRef) {
        let options = ExecuteOptions::default().session(S);
        let handle = self.runtime.execute(agent, "go".into(), options).await.unwrap();
        (handle, self.begun().pop().unwrap())
    }

    /// Goes on with the story.
    pub(crate) async fn resume(&self, agent: AnyAgent) -> RunRef {
        self.runtime.resume(agent, &S.into(), ResumeOptions::default()).await.unwrap();
        self.begun().pop().unwrap()
    }

    /// What the engine was handed, in order.
    pub(crate) fn begun(&self) -> Vec<RunRef> {
        self.engine.begun.borrow().clone()
    }

    /// The run that it was handed as that one, from 0, once it was.
    pub(crate) async fn begun_as(&self, index: usize) -> RunRef {
        let mut begun = self.engine.begun.subscribe();
        let begun = within(begun.wait_for(|begun| begun.len() > index)).await.unwrap();
        begun.get(index).cloned().unwrap()
    }

    /// Carries a run out to its end.
    pub(crate) async fn drive(&self, of: &RunRef) {
        within(in_parts::drive(&self.runtime, of, Redelivery::Never)).await.unwrap();
    }

    /// Carries a run out up to what is to be done side by side.
    pub(crate) async fn up_to_calls(&self, of: &RunRef) -> Next {
        let mut part = WorkItem::Open;
        loop {
            match self.runtime.perform(of, &part, true).await.unwrap() {
                Next::WorkItem(next) => part = next,
                next => return next,
            }
        }
    }

    /// Leaves a run lying: it has not ended, and nobody has a lease on it.
    pub(crate) async fn abandon(&self, of: &RunRef) {
        self.runtime.give_up(of).await;
    }

    pub(crate) async fn head(&self, session: &SessionId) -> Head {
        self.store.head(session).await.unwrap().unwrap()
    }

    pub(crate) async fn fold(&self, session: &SessionId) -> Session {
        load(&self.store, session).await.unwrap()
    }

    /// How the runs of a session stand, in order.
    pub(crate) async fn runs(&self, session: &SessionId) -> Vec<RunStatus> {
        self.fold(session).await.runs().map(|run| run.status).collect()
    }

    /// Waits until the clock of the store has passed that moment.
    pub(crate) async fn until_past(&self, moment: Timestamp) {
        let passes = async {
            while self.head(&S.into()).await.read_at <= moment {
                tokio::task::yield_now().await;
            }
        };
        within(passes).await;
    }
}

/// One that answers at once.
pub(crate) fn teller() -> AnyAgent {
    let agent = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    agent.build().unwrap().erased()
}

/// What the teller says.
pub(crate) fn tells() -> ScriptedLlm {
    ScriptedLlm::new([Reply::text("So.")])
}

/// One that says yes.
pub(crate) fn helps() -> Agent<(), bool> {
    let helper = Agent::builder("helper").description("Helps.").system_prompt("You help.");
    helper.model("scripted").output().build().unwrap()
}

/// The same, as executors take it.
pub(crate) fn helper() -> AnyAgent {
    helps().erased()
}

/// One that asks a helper first.
pub(crate) fn boss() -> AnyAgent {
    let boss = Agent::builder("boss").system_prompt("You ask.").model("scripted");
    boss.sub_agent(&helps()).build().unwrap().erased()
}

/// What the boss and its helper say.
pub(crate) fn asks() -> RoutingScriptedLlm {
    let asks = Reply::tool_call("subagent__helper", json!({ "message": "help" }));
    RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new([asks, Reply::text("So.")]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!(true))]))
}
