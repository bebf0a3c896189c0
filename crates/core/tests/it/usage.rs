//! Tests of usage across many sessions: pages, filters, and sessions that are deleted meanwhile.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::error::Result;
use helix_agents_core::event::{SCHEMA, encode};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::{
    Session, SessionReader, UsageQuery, usage_of_sessions, usage_of_tree,
};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Guard, Head, LeaseChange, NewSession, Page,
    Position, Purge, Renewal, SessionFilter, SessionStatus, SessionUsage, Snapshot, StateStore,
    StoreScope, StoredAppend, Summary,
};
use helix_agents_core::usage::UsageRollup;
use helix_agents_store_memory::MemoryStore;

use crate::support::{first_events, reply, text};

fn id(number: u32) -> SessionId {
    SessionId::from(format!("s{number:04}"))
}

/// Returns a usage with this number of steps.
fn steps(steps: u64) -> Option<Arc<UsageRollup>> {
    Some(Arc::new(UsageRollup { steps, ..UsageRollup::default() }))
}

/// Creates a session with one step in its log and `usage` in its head.
async fn create(store: &dyn StateStore, number: u32, usage: Option<Arc<UsageRollup>>) {
    let session = id(number);
    let tags = [("parity".to_owned(), (number % 2).to_string())].into();
    let new = NewSession { agent: "tester".into(), root: session.clone(), parent: None, tags };
    let summary = Summary {
        status: SessionStatus::Active,
        run: Some("r1".into()),
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
    let tags = [("parity".to_owned(), "1".to_owned())].into();
    let odd = UsageQuery { tags, ..UsageQuery::default() };
    assert_eq!(counted(&store, &odd).await, (300, 90_000));
    let tags = [("parity".to_owned(), "1".to_owned()), ("other".to_owned(), "1".to_owned())].into();
    let none = UsageQuery { tags, ..UsageQuery::default() };
    assert_eq!(counted(&store, &none).await, (0, 0));
}

/// Heads of sessions from older versions have no usage.
#[tokio::test]
async fn the_log_is_read_if_no_usage_is_stored() {
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

#[tokio::test]
async fn a_session_deleted_during_a_query_does_not_end_the_query() {
    for deleted in [Deleted::Last, Deleted::Page] {
        let store = Vanishing { store: MemoryStore::new(), deleted };
        for number in 1..=600 {
            create(&store, number, steps(1)).await;
        }
        // The usage was read before the deletion.
        assert_eq!(counted(&store, &UsageQuery::default()).await, (600, 600), "{deleted:?}");
    }
}

/// The sessions of a returned page that are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deleted {
    Last,
    Page,
}

/// A store that deletes sessions as soon as they are listed.
#[derive(Debug)]
struct Vanishing {
    store: MemoryStore,
    deleted: Deleted,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for Vanishing {
    fn reach(&self) -> StoreScope {
        self.store.reach()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.store.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.store.max_append_bytes()
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
        self.store.list(filter, page).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let found = self.store.list_usage(filter, page).await?;
        let heads = match self.deleted {
            Deleted::Last => found.last().into_iter().collect::<Vec<_>>(),
            Deleted::Page => found.iter().collect(),
        };
        for usage in heads {
            self.store.delete(&usage.head.session).await?;
        }
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

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.store.purge(purge).await
    }
}
