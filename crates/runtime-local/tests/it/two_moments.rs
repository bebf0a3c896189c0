//! A session that changes while a start reads it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::executor::{AgentExecutorExt as _, ExecuteOptions};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};

/// A store that returns an outdated head once.
#[derive(Debug)]
struct Slow {
    store: MemoryStore,
    old: Mutex<Option<Head>>,
}

#[async_trait]
impl StateStore for Slow {
    fn scope(&self) -> StoreScope {
        self.store.scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.store.guarantees()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.store.create_session(new, first).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.store.fork(from, new, first).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        StateStore::append(&self.store, append).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        StateStore::read_log(&self.store, session, after, limit).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        let old = self.old.lock().unwrap().take();
        if old.is_some() { Ok(old) } else { self.store.head(session).await }
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.store.list(filter, page).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.store.list_usage(filter, page).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.store.renew(session, run, ttl).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.store.save_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.store.snapshot(session).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        self.store.delete_if(session, required_tags).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.store.purge(purge).await
    }
}

/// The head is from before the start of another process's run, the log is from after it.
#[tokio::test]
async fn a_run_that_starts_between_two_reads_counts_as_running() {
    let (store, gate) = (MemoryStore::new(), Gate::new());
    let agent = Agent::builder("teller").system_prompt("You tell.").build().unwrap();
    let options = || ExecuteOptions::default().session("s");
    let llm = ScriptedLlm::new([Reply::text("One."), Reply::text("Two.").at_gate(&gate)]);
    let there = LocalRuntime::builder().store(store.clone()).llm(llm).build().unwrap();
    let first = there.start(&agent, "go", options()).await.unwrap();
    within(first.result()).await.unwrap();
    let old = store.head(&SessionId::from("s")).await.unwrap();
    let second = there.start(&agent, "go", options()).await.unwrap();
    within(gate.reached()).await;

    let here = LocalRuntime::builder()
        .state_store(Arc::new(Slow { store: store.clone(), old: Mutex::new(old) }))
        .stream_manager(Arc::new(store))
        .llm(ScriptedLlm::new([]))
        .build()
        .unwrap();
    let refused = here.start(&agent, "go", options()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AlreadyRunning);
    gate.open();
    within(second.result()).await.unwrap();
}
