//! A store that acknowledges operations before it commits them. The durability suite must detect
//! it.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::mpsc::{Sender, channel};

use helix_agents_conformance::durable_suite::{
    self, DurableHarness, acknowledged_operations_survive_sigkill,
};
use helix_agents_conformance::scenario;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
};
use helix_agents_store_sqlite::SqliteStore;

use crate::durable::place;
use crate::support::Folder;

/// A store that answers as soon as an operation has a slot in a queue of length one.
#[derive(Debug)]
struct EagerStore {
    store: SqliteStore,
    queue: Sender<BoxFuture<'static, ()>>,
}

impl EagerStore {
    fn new(store: SqliteStore) -> Self {
        let (queue, mut queued) = channel::<BoxFuture<'static, ()>>(1);
        tokio::spawn(async move {
            while let Some(operation) = queued.recv().await {
                operation.await;
            }
        });
        Self { store, queue }
    }

    fn store(&self) -> &dyn StateStore {
        &self.store
    }

    async fn later<T>(&self, operation: impl Future<Output = Result<T>> + Send + 'static) {
        self.queue.send(operation.map(|done| drop(done.unwrap())).boxed()).await.unwrap();
    }
}

/// The timestamp of every answer.
const AT: Timestamp = Timestamp(0);

#[async_trait]
impl StateStore for EagerStore {
    fn scope(&self) -> StoreScope {
        self.store.scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.store.guarantees()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        let store = self.store.clone();
        self.later(async move { store.create_session(new, first).await }).await;
        Ok(CreateOutcome::Created { at: AT })
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        let (store, from) = (self.store.clone(), from.clone());
        self.later(async move { store.fork(&from, new, first).await }).await;
        Ok(ForkOutcome::Created { at: AT })
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        let store = self.store.clone();
        self.later(async move { StateStore::append(&store, append).await }).await;
        Ok(AppendOutcome::Appended { at: AT })
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.store().read_log(session, after, limit).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.store().head(session).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.store().list(filter, page).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.store().list_usage(filter, page).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.store().renew(session, run, ttl).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.store().save_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.store().snapshot(session).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let (store, session) = (self.store.clone(), session.clone());
        let required_tags = required_tags.clone();
        self.later(async move { store.delete_if(&session, &required_tags).await }).await;
        Ok(true)
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.store().purge(purge).await
    }
}

struct Eager(Folder);

#[async_trait]
impl DurableHarness for Eager {
    async fn open(place: &str) -> Arc<dyn StateStore> {
        let store = SqliteStore::open(place).await.unwrap();
        // The killed process uses the eager store, and the checking process does not.
        if std::env::var_os("HELIX_WRITER_PLACE").is_some() {
            return Arc::new(EagerStore::new(store));
        }
        Arc::new(store)
    }

    fn place(&self) -> String {
        place(&self.0)
    }

    fn forces_writes(&self) -> bool {
        true
    }
}

#[test]
fn writer() {
    durable_suite::write::<Eager>();
}

#[test]
fn an_acknowledgement_before_the_commit_is_detected() {
    let detected = catch_unwind(|| {
        scenario::run("eager", async || {
            let writer = concat!(module_path!(), "::writer");
            acknowledged_operations_survive_sigkill(&Eager(Folder::new()), writer).await;
        });
    });
    assert!(detected.is_err());
}
