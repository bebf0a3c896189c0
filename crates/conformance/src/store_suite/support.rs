//! Helpers for scenarios: appends and sessions.

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

/// A duration longer than any test, so a lease with it is held.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::from(text)
}

pub(crate) fn run(text: &str) -> RunId {
    RunId::from(text)
}

/// Returns a session without a parent, of the agent `agent`.
pub(crate) fn root_session(session: &SessionId) -> NewSession {
    NewSession { agent: "agent".into(), root: session.clone(), parent: None, tags: BTreeMap::new() }
}

/// Returns a child of `parent` in the tree of `root`.
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

/// Returns the summary while `run` is the current run.
pub(crate) fn running(run: &str) -> Summary {
    Summary { run: Some(RunId::from(run)), ..idle() }
}

/// Returns an append of one event whose body is its id.
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

/// Returns the append that creates a session.
pub(crate) fn first(session: &SessionId, id: &str) -> Append {
    Append { summary: Some(idle()), ..append(session, &Position::start(), id) }
}

/// A writer of a session, which knows the end of the log.
pub(crate) struct Writer {
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) session: SessionId,
    pub(crate) position: Position,
}

impl Writer {
    /// Creates a session without a parent, whose first append is `first`.
    pub(crate) async fn create(store: &Arc<dyn StateStore>, session: &str) -> Self {
        let session = id(session);
        let new = root_session(&session);
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

    /// Returns an append of one event at the end of the log.
    pub(crate) fn next(&self, id: &str) -> Append {
        append(&self.session, &self.position, id)
    }

    /// Appends, asserts that the append is accepted, and moves to the new position.
    pub(crate) async fn take(&mut self, append: Append) -> Timestamp {
        let at = taken(&self.store.append(append.clone()).await.unwrap());
        self.follow(&append);
        at
    }

    /// Moves to the position after an accepted append.
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

    /// Returns the ids of all appends.
    pub(crate) async fn ids(&self) -> Vec<String> {
        ids(&self.log().await)
    }
}

/// Returns the time of the store's clock, from an append that its deadline refuses.
pub(crate) async fn now(store: &Arc<dyn StateStore>, session: &SessionId) -> Timestamp {
    let position = head(store, session).await.position;
    let probe = append(session, &position, "probe");
    let probe = Append { guard: Guard::NotAfter(Timestamp(0)), ..probe };
    match store.append(probe).await.unwrap() {
        AppendOutcome::GuardFailed { now, .. } => now,
        other => panic!("accepted in spite of its guard: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn taken(outcome: &AppendOutcome) -> Timestamp {
    match outcome {
        AppendOutcome::Appended { at } => *at,
        other => panic!("not accepted: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn missed(outcome: AppendOutcome) -> Vec<StoredAppend> {
    match outcome {
        AppendOutcome::Conflict { missed } => missed,
        other => panic!("no conflict: {other:?}"),
    }
}

/// Returns the head with a fixed read time.
pub(crate) async fn head(store: &Arc<dyn StateStore>, session: &SessionId) -> Head {
    with_fixed_read_time(store.head(session).await.unwrap().unwrap())
}

/// Sets a fixed read time, so that equal heads with different read times compare equal.
#[track_caller]
pub(crate) fn with_fixed_read_time(head: Head) -> Head {
    assert!(head.read_at >= head.updated_at, "read before it was written: {head:?}");
    Head { read_at: head.updated_at, ..head }
}

/// Returns the whole log and asserts that it has no gaps.
pub(crate) async fn log(store: &Arc<dyn StateStore>, session: &SessionId) -> Vec<StoredAppend> {
    let log = store.read_log(session, 0, u32::MAX).await.unwrap();
    assert_gapless(0, &log);
    log
}

/// Asserts that the appends follow each other, starting after version `after`.
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
