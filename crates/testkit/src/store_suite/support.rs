//! Appends and sessions for scenarios.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, Guard, Head, LeaseChange, NewSession, Position,
    SessionStatus, StateStore, StoredAppend, Summary,
};

/// Longer than any test: a lease of this length is held.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::from(text)
}

pub(crate) fn run(text: &str) -> RunId {
    RunId::from(text)
}

/// A session of its own, of the agent `agent`.
pub(crate) fn alone(session: &SessionId) -> NewSession {
    NewSession { agent: "agent".into(), root: session.clone(), parent: None, tags: BTreeMap::new() }
}

/// A child of `parent` in the tree of `root`.
pub(crate) fn child(parent: &SessionId, root: &SessionId) -> NewSession {
    NewSession {
        agent: "child".into(),
        root: root.clone(),
        parent: Some(parent.clone()),
        tags: BTreeMap::new(),
    }
}

pub(crate) fn idle() -> Summary {
    Summary {
        status: SessionStatus::Active,
        run: None,
        runtime: "local".into(),
        pending: 0,
        wake_at: None,
    }
}

/// The summary while `run` is the current run.
pub(crate) fn running(run: &str) -> Summary {
    Summary { run: Some(RunId::from(run)), ..idle() }
}

/// An append of one event whose body is its id.
pub(crate) fn append(session: &SessionId, expected: &Position, id: &str) -> Append {
    Append {
        session: session.clone(),
        expected: expected.clone(),
        id: AppendId::from(id),
        run: None,
        schema: 1,
        count: 1,
        body: Bytes::copy_from_slice(id.as_bytes()),
        summary: None,
        usage: None,
        lease: LeaseChange::Keep,
        guard: Guard::None,
    }
}

/// The append that creates a session.
pub(crate) fn first(session: &SessionId, id: &str) -> Append {
    Append { summary: Some(idle()), ..append(session, &Position::start(), id) }
}

/// One writer's view of a session: it knows where the log ends.
pub(crate) struct Writer {
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) session: SessionId,
    pub(crate) position: Position,
}

impl Writer {
    /// Creates a session of its own, whose first append is `first`.
    pub(crate) async fn create(store: &Arc<dyn StateStore>, session: &str) -> Self {
        let session = id(session);
        let new = alone(&session);
        Self::create_as(store, new, first(&session, "first")).await
    }

    pub(crate) async fn create_as(
        store: &Arc<dyn StateStore>,
        new: NewSession,
        first: Append,
    ) -> Self {
        let session = first.session.clone();
        let position = Position { version: u64::from(first.count), append: first.id.clone() };
        let outcome = store.create_session(new, first).await.unwrap();
        assert!(matches!(outcome, CreateOutcome::Created { .. }), "{outcome:?}");
        Self { store: Arc::clone(store), session, position }
    }

    /// An append of one event at the end of the log.
    pub(crate) fn next(&self, id: &str) -> Append {
        append(&self.session, &self.position, id)
    }

    /// Appends, and follows; it has to be taken.
    pub(crate) async fn take(&mut self, append: Append) -> Timestamp {
        let at = taken(&self.store.append(append.clone()).await.unwrap());
        self.follow(&append);
        at
    }

    /// Moves on to the position after an append that was taken.
    pub(crate) fn follow(&mut self, append: &Append) {
        let version = append.expected.version + u64::from(append.count);
        self.position = Position { version, append: append.id.clone() };
    }

    /// Appends one event.
    pub(crate) async fn add(&mut self, id: &str) -> Timestamp {
        self.take(self.next(id)).await
    }

    pub(crate) async fn head(&self) -> Head {
        head(&self.store, &self.session).await
    }

    pub(crate) async fn log(&self) -> Vec<StoredAppend> {
        log(&self.store, &self.session).await
    }

    /// The ids of all appends.
    pub(crate) async fn ids(&self) -> Vec<String> {
        ids(&self.log().await)
    }
}

/// The store's clock, from an append that cannot be taken.
pub(crate) async fn now(store: &Arc<dyn StateStore>, session: &SessionId) -> Timestamp {
    let position = head(store, session).await.position;
    let probe = append(session, &position, "probe");
    let probe = Append { guard: Guard::NotAfter(Timestamp(0)), ..probe };
    match store.append(probe).await.unwrap() {
        AppendOutcome::GuardFailed { now, .. } => now,
        other => panic!("taken in spite of its guard: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn taken(outcome: &AppendOutcome) -> Timestamp {
    match outcome {
        AppendOutcome::Appended { at } => *at,
        other => panic!("not taken: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn missed(outcome: AppendOutcome) -> Vec<StoredAppend> {
    match outcome {
        AppendOutcome::Conflict { missed } => missed,
        other => panic!("no conflict: {other:?}"),
    }
}

/// The head, but for when it was read.
pub(crate) async fn head(store: &Arc<dyn StateStore>, session: &SessionId) -> Head {
    still(store.head(session).await.unwrap().unwrap())
}

/// Heads that were read at different times and are the same otherwise compare equal.
#[track_caller]
pub(crate) fn still(head: Head) -> Head {
    assert!(head.read_at >= head.updated_at, "read before it was written: {head:?}");
    Head { read_at: head.updated_at, ..head }
}

/// The whole log, which has to be gapless.
pub(crate) async fn log(store: &Arc<dyn StateStore>, session: &SessionId) -> Vec<StoredAppend> {
    let log = store.read_log(session, 0, u32::MAX).await.unwrap();
    assert_gapless(0, &log);
    log
}

/// That the appends follow each other from version `after` on.
#[track_caller]
pub(crate) fn assert_gapless(after: u64, log: &[StoredAppend]) {
    let mut version = after;
    for append in log {
        assert_eq!(append.first, version + 1, "a gap before {}", append.id);
        version = append.version();
    }
}

pub(crate) fn ids(log: &[StoredAppend]) -> Vec<String> {
    log.iter().map(|append| append.id.to_string()).collect()
}
