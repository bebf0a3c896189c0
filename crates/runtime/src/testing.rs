//! Runs that a test drives step by step.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_conformance::faults::FaultStore;
use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::{Error, Result};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Reply, ScriptedLlm};

use crate::engine::{Engine, StartedRun};
use crate::live::LiveRun;
use crate::run_ref::RunRef;
use crate::runtime::Runtime;
use crate::settings::Settings;

/// The lease of the runs.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// The session of the runs.
pub(crate) const SESSION: &str = "story";

/// An engine that stores the most recently started run instead of executing it.
#[derive(Debug, Default)]
struct Kept(Mutex<Option<StartedRun>>);

#[async_trait]
impl Engine for Kept {
    fn kind(&self) -> &'static str {
        "kept"
    }

    async fn start(&self, started: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
        Ok(None)
    }

    async fn stop_reason(&self, _: &RunRef) -> Option<Error> {
        None
    }
}

/// A runtime whose runs are driven by the test.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) store: FaultStore,
    pub(crate) runtime: Runtime,
    kept: Arc<Kept>,
}

impl Scene {
    pub(crate) fn new(store: FaultStore, replies: impl IntoIterator<Item = Reply>) -> Self {
        let settings = Settings {
            store: Some(Arc::new(store.clone())),
            streams: Some(Arc::new(MemoryStore::new())),
            llm: Some(Arc::new(ScriptedLlm::new(replies))),
            lease: LEASE,
            ..Settings::default()
        };
        let kept = Arc::<Kept>::default();
        let runtime = Runtime::new(settings.context().unwrap(), Arc::clone(&kept)).erased();
        Self { store, runtime, kept }
    }

    /// Starts the first run of the session.
    pub(crate) async fn begin(&self, agent: &AnyAgent) -> StartedRun {
        let options = ExecuteOptions::default().session(SESSION);
        self.runtime.execute(Arc::clone(agent), "go".into(), options).await.unwrap();
        self.kept()
    }

    /// Starts another run, which takes over.
    pub(crate) async fn resume(&self, agent: &AnyAgent) -> StartedRun {
        let options = ResumeOptions::default();
        self.runtime.resume(Arc::clone(agent), &SESSION.into(), options).await.unwrap();
        self.kept()
    }

    fn kept(&self) -> StartedRun {
        self.kept.0.lock().unwrap().take().unwrap()
    }
}

/// Returns a store that injects no faults yet.
pub(crate) fn store() -> FaultStore {
    FaultStore::new(Arc::new(MemoryStore::new()))
}
