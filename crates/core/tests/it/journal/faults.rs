//! Tests with stores that fail, lose replies or lose history.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_conformance::faults::Fault;
use helix_agents_core::clock::Clock as _;
use helix_agents_core::clock::IdSourceExt as _;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::event::{Event, SCHEMA, encode};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::session::Journal;
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Guard, Head, LeaseChange, NewSession, Page,
    Purge, Renewal, SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
    WriteQueue,
};
use serde_json::json;

use crate::support::{World, agent, calls, code, id, names, reply, result, text};

#[tokio::test]
async fn an_append_whose_reply_is_lost_is_retried_and_written_once() {
    for fault in [Fault::LoseReply, Fault::FailBefore] {
        let world = World::new();
        let mut journal = world.create().await;
        world.faults.inject("model_replied", fault);
        journal.stage(&[reply(1, calls(&["search"]))]).unwrap();
        let committed = journal.commit().await.unwrap();
        assert_eq!(names(&committed.events), "model_replied");
        assert_eq!(world.log().await[1..], ["model_replied"]);
        assert_eq!(world.clock.waits.load(Ordering::Relaxed), 1, "after a wait");
        assert_eq!(journal.session().position(), world.session().await.position());
    }
}

#[tokio::test]
async fn a_reply_that_is_lost_twice_is_retried_twice() {
    let world = World::new();
    let mut journal = world.create().await;
    world.faults.inject("model_replied", Fault::LoseReply);
    world.faults.inject("model_replied", Fault::LoseReply);
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    journal.commit().await.unwrap();
    assert_eq!(world.appends().await.len(), 2);
}

#[tokio::test]
async fn retries_of_an_unavailable_store_time_out() {
    let world = World::new();
    let mut journal = world.create().await;
    for _ in 0..100 {
        world.faults.inject("model_replied", Fault::FailBefore);
    }
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    let error = journal.commit().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    let waits = world.clock.waits.load(Ordering::Relaxed);
    assert!((12..30).contains(&waits), "waits double up to a second: {waits}");
    assert!(world.clock.monotonic() <= Duration::from_secs(10), "{:?}", world.clock.monotonic());
    let tries = (waits + 1).to_string();
    assert!(error.context().any(|fact| fact == ("tries", &*tries)), "{error}");
    assert_eq!(world.appends().await.len(), 1);
}

#[tokio::test]
async fn a_permanent_store_failure_is_not_retried() {
    let world = World::new();
    let mut journal = world.create().await;
    world.faults.inject("model_replied", Fault::Refuse(ErrorCode::StoreFull));
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    assert_eq!(code(journal.commit().await), "store_full");
    assert_eq!(world.clock.waits.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_log_with_another_continuation_is_lost_history_and_stops_the_run() {
    let world = World::new();
    let mut journal = world.create().await;
    // The store was restored and another process wrote to it: the version is the same, but the
    // append is another one.
    world.faults.delete(&id()).await.unwrap();
    world.create().await;
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    assert_eq!(code(journal.commit().await), "history_lost");
    assert_eq!(world.appends().await.len(), 1, "nothing was written");
}

#[tokio::test]
async fn a_log_that_is_shorter_than_what_was_acknowledged_is_lost_history() {
    let world = World::new();
    let mut journal = world.answered(calls(&["search"])).await;
    world.faults.delete(&id()).await.unwrap();
    world.create().await;
    journal.stage(&[result("1.0", json!({}))]).unwrap();
    assert_eq!(code(journal.commit().await), "history_lost");
}

#[tokio::test]
async fn a_session_that_was_deleted_is_not_found() {
    let world = World::new();
    let mut journal = world.create().await;
    world.faults.delete(&id()).await.unwrap();
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    assert_eq!(code(journal.commit().await), "session_not_found");
}

#[tokio::test]
async fn continuous_conflicts_end_with_store_busy() {
    let world = World::new();
    let journal = world.create().await;
    let crowded = Crowded(Arc::new(world.faults.clone()), world.ids());
    let config = helix_agents_core::session::JournalConfig {
        store: Arc::new(crowded),
        ..world.journal_config()
    };
    let session = journal.session().clone();
    let mut journal = Journal::new(config, agent(), session, RunId::from("r1"));
    journal.stage(&[reply(1, text("Done."))]).unwrap();
    assert_eq!(code(journal.commit().await), "store_busy");
    let log = world.log().await;
    assert_eq!(log.len(), 65, "64 attempts");
    assert!(log[1..].iter().all(|line| line == "interrupt_requested"), "{log:?}");
}

/// A store in which another append always comes first.
#[derive(Debug)]
struct Crowded(Arc<dyn StateStore>, Arc<dyn helix_agents_core::clock::IdSource>);

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for Crowded {
    fn scope(&self) -> StoreScope {
        self.0.scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.0.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.0.max_append_bytes()
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.0.create_session(new, first).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.0.fork(from, new, first).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        let head = self.0.head(&append.session).await?.unwrap();
        let (request, run) = (self.1.request(), RunId::from("r1"));
        let event = Event::InterruptRequested { request, run, reason: None };
        let first = Append {
            session: append.session.clone(),
            expected: head.position,
            id: AppendId::from(format!("crowd {}", self.1.next())),
            run: None,
            schema: SCHEMA,
            count: 1,
            body: encode(&[event])?,
            summary: None,
            usage: None,
            lease: LeaseChange::Keep,
            guard: Guard::None,
        };
        self.0.append(first).await?;
        self.0.append(append).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.0.read_log(session, after, limit).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.0.head(session).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.0.list(filter, page).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.0.list_usage(filter, page).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.0.renew(session, run, ttl).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.0.save_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.0.snapshot(session).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.0.delete(session).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        self.0.delete_if(session, required_tags).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.0.purge(purge).await
    }
}

#[test]
fn a_journal_and_its_futures_are_send() {
    fn can_move<T: Send>(_: &T) {}
    let session = helix_agents_core::session::Session::new(id());
    let mut journal =
        Journal::new(World::new().journal_config(), agent(), session, RunId::from("r1"));
    can_move(&journal);
    can_move(&journal.commit());
    can_move(&journal.catch_up());
    can_move(&journal.start(Vec::new()));
}
