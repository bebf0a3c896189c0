//! Usage and lists of many sessions: pages, filters, and sessions that go meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::event::{SCHEMA, encode};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::{
    Session, SessionReader, UsageQuery, pending_calls, usage_of_sessions, usage_of_tree,
};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Guard, Head, LeaseChange, MAX_PAGE,
    NewSession, Page, Position, Purge, Renewal, SessionFilter, SessionStatus, SessionUsage,
    Snapshot, StateStore, StoreScope, StoredAppend, Summary, WriteQueue, list_all,
};
use helix_agents_core::usage::UsageRollup;
use helix_agents_store_memory::MemoryStore;

use crate::support::{first_events, reply, text};

fn id(number: u32) -> SessionId {
    SessionId::from(format!("s{number:04}"))
}

/// Usage of so many steps.
fn steps(steps: u64) -> Option<Arc<UsageRollup>> {
    let mut usage = UsageRollup::default();
    usage.steps = steps;
    Some(Arc::new(usage))
}

/// A session whose log says one step, and whose head says `usage`.
async fn create(store: &dyn StateStore, number: u32, usage: Option<Arc<UsageRollup>>) {
    create_with(store, number, id(number), usage, None).await;
}

/// The same below a root.
async fn create_below(
    store: &dyn StateStore,
    number: u32,
    root: SessionId,
    usage: Option<Arc<UsageRollup>>,
) {
    create_with(store, number, root, usage, None).await;
}

async fn create_with(
    store: &dyn StateStore,
    number: u32,
    root: SessionId,
    usage: Option<Arc<UsageRollup>>,
    run: Option<RunId>,
) {
    let session = id(number);
    let tags = [("parity".to_owned(), (number % 2).to_string())].into();
    let new = NewSession { agent: "tester".into(), root, parent: None, tags };
    let summary = Summary {
        status: SessionStatus::Active,
        run,
        runtime: "hand".into(),
        pending: 0,
        wake_at: None,
    };
    let mut events = first_events(&Session::new(session.clone()), "r1");
    events.push(reply(1, text("Done.")));
    let append = Append {
        session,
        expected: Position::start(),
        id: "first".into(),
        run: Some("r1".into()),
        schema: SCHEMA,
        count: u32::try_from(events.len()).unwrap(),
        body: encode(&events).unwrap(),
        summary: Some(summary),
        usage,
        lease: LeaseChange::Keep,
        guard: Guard::None,
    };
    store.create_session(new, append).await.unwrap();
}

async fn counted(store: &dyn StateStore, query: &UsageQuery) -> (u64, u64) {
    let report = usage_of_sessions(SessionReader::of(store), query).await.unwrap();
    (report.sessions, report.usage.steps)
}

#[tokio::test]
async fn every_session_is_counted_once_over_all_pages() {
    let store = MemoryStore::new();
    for number in 1..=600 {
        create(&store, number, steps(number.into())).await;
    }
    assert_eq!(counted(&store, &UsageQuery::default()).await, (600, 180_300));
    let odd = SessionFilter::new().tag("parity", "1");
    assert_eq!(counted(&store, &UsageQuery::new().filter(odd.clone())).await, (300, 90_000));
    let neither = UsageQuery::new().filter(odd.tag("other", "1"));
    assert_eq!(counted(&store, &neither).await, (0, 0));
}

/// Sessions of older versions, whose heads say nothing.
#[tokio::test]
async fn the_log_is_read_if_the_head_has_no_answer() {
    let store = MemoryStore::new();
    create(&store, 1, steps(100)).await;
    create(&store, 2, None).await;
    create(&store, 3, steps(0)).await;
    assert_eq!(counted(&store, &UsageQuery::default()).await, (3, 101));
    let report =
        usage_of_sessions(SessionReader::of(&store), &UsageQuery::default()).await.unwrap();
    assert_eq!(report.usage.models["unknown"].calls, 1);
    let tree = usage_of_tree(SessionReader::of(&store), &id(2)).await.unwrap();
    assert_eq!((tree.steps, tree.tokens.input_tokens), (1, 10));
}

/// A run reports its usage when it ends.
#[tokio::test]
async fn the_log_is_read_while_a_session_has_a_current_run() {
    let store = MemoryStore::new();
    create(&store, 1, steps(100)).await;
    create_with(&store, 2, id(2), steps(100), Some("r1".into())).await;
    assert_eq!(counted(&store, &UsageQuery::default()).await, (2, 101));
    let tree = usage_of_tree(SessionReader::of(&store), &id(2)).await.unwrap();
    assert_eq!(tree.steps, 1);
}

#[tokio::test]
async fn a_session_that_is_deleted_meanwhile_ends_no_query() {
    for deleted in [Deleted::Last, Deleted::Page] {
        let store = Vanishing::new(deleted, u32::MAX);
        for number in 1..=600 {
            create(&store, number, steps(1)).await;
        }
        // What was read was read before it went.
        assert_eq!(counted(&store, &UsageQuery::default()).await, (600, 600), "{deleted:?}");
    }
}

/// More sessions than two pages list.
const MANY: u32 = 2 * MAX_PAGE + 1;

#[tokio::test]
async fn a_session_that_is_deleted_meanwhile_ends_no_list() {
    for deleted in [Deleted::Last, Deleted::Page] {
        let store = Vanishing::new(deleted, 3);
        for number in 1..=MANY {
            create(&store, number, None).await;
        }
        let heads = list_all(&store, &SessionFilter::default()).await.unwrap();
        let listed: BTreeSet<_> = heads.iter().map(|head| head.session.clone()).collect();
        assert_eq!(listed, (1..=MANY).map(id).collect(), "{deleted:?}");
        assert_eq!(heads.len(), listed.len(), "{deleted:?}: each once");
    }
}

#[tokio::test]
async fn a_list_fails_after_too_many_concurrent_deletions() {
    let store = Vanishing::new(Deleted::Last, u32::MAX);
    for number in 1..=MANY {
        create(&store, number, None).await;
    }
    let error = list_all(&store, &SessionFilter::default()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::SessionNotFound);
}

#[tokio::test]
async fn a_session_that_is_deleted_meanwhile_has_no_pending_calls() {
    for deleted in [Deleted::Last, Deleted::Page] {
        let store = Vanishing::new(deleted, 3);
        for number in 1..=MANY {
            create_below(&store, number, id(1), None).await;
        }
        let pending = pending_calls(SessionReader::of(&store), &id(1)).await.unwrap();
        assert_eq!(pending, [], "{deleted:?}");
    }
}

/// The sessions of a returned page that are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deleted {
    Last,
    Page,
}

/// A store whose sessions go as soon as they were listed.
#[derive(Debug)]
struct Vanishing {
    store: MemoryStore,
    deleted: Deleted,
    /// The number of further lists that delete sessions.
    lists: AtomicU32,
}

impl Vanishing {
    fn new(deleted: Deleted, lists: u32) -> Self {
        Self { store: MemoryStore::new(), deleted, lists: lists.into() }
    }

    /// Deletes those of the listed sessions that go.
    async fn delete_of<'a>(
        &self,
        listed: impl DoubleEndedIterator<Item = &'a SessionId>,
    ) -> Result<()> {
        let left = |lists: u32| lists.checked_sub(1);
        if self.lists.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
            return Ok(());
        }
        let going: Vec<_> = match self.deleted {
            Deleted::Last => listed.rev().take(1).collect(),
            Deleted::Page => listed.collect(),
        };
        for session in going {
            self.store.delete(session).await?;
        }
        Ok(())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for Vanishing {
    fn scope(&self) -> StoreScope {
        self.store.scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.store.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.store.max_append_bytes()
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.store.create_session(new, first).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.store.fork(from, new, first).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.store.append(append).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.store.read_log(session, after, limit).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.store.head(session).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let found = self.store.list(filter, page).await?;
        self.delete_of(found.iter().map(|head| &head.session)).await?;
        Ok(found)
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let found = self.store.list_usage(filter, page).await?;
        self.delete_of(found.iter().map(|usage| &usage.head.session)).await?;
        Ok(found)
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

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.store.delete(session).await
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
