//! All sessions: the state store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::mutant;
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, MAX_PAGE, NewSession, Page, Purge,
    Renewal, SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
};

use crate::MemoryStore;
use crate::clock::StoreClock;
use crate::log::Log;

/// Sessions by their id. A lock for the table, held only to look up, and one per session, so that
/// sessions do not wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    clock: StoreClock,
    table: RwLock<HashMap<SessionId, Arc<Session>>>,
}

/// A session's log; none once it was deleted, for those who looked it up before.
#[derive(Debug)]
struct Session(Mutex<Option<Log>>);

impl Session {
    // A panic under this lock is a bug of ours that has been reported already; the log is whole,
    // because nothing that could panic happens between its changes.
    fn lock(&self) -> MutexGuard<'_, Option<Log>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    pub(crate) fn new(clock: StoreClock) -> Self {
        Self { clock, ..Self::default() }
    }

    fn find(&self, id: &SessionId) -> Option<Arc<Session>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(id).cloned()
    }

    /// Does something with a session's log.
    fn with<T>(&self, id: &SessionId, work: impl FnOnce(&mut Log) -> T) -> Result<T> {
        let session = self.find(id).ok_or_else(|| not_found(id))?;
        let mut log = session.lock();
        Ok(work(log.as_mut().ok_or_else(|| not_found(id))?))
    }

    fn create(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        let summary = first.check_first(&new)?.clone();
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = table.get(&first.session) {
            let log = session.lock();
            let created = log.as_ref().and_then(|log| log.created_at(&first.expected));
            let same = created.filter(|it| it.id == first.id);
            return Ok(
                same.map_or(CreateOutcome::Exists, |it| CreateOutcome::Created { at: it.at })
            );
        }
        let (id, now) = (first.session.clone(), self.clock.now());
        let log = Log::create(new, first, summary, now);
        table.insert(id, Arc::new(Session(Mutex::new(Some(log)))));
        Ok(CreateOutcome::Created { at: now })
    }

    fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        let summary = first.check_fork(from, &new)?.clone();
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = table.get(&first.session) {
            let log = session.lock();
            let created = log.as_ref().and_then(|log| log.created_at(&first.expected));
            let same = created.filter(|it| it.id == first.id);
            return Ok(same.map_or(ForkOutcome::Exists, |it| ForkOutcome::Created { at: it.at }));
        }
        let id = first.session.clone();
        let log = {
            let original = table.get(from).ok_or_else(|| not_found(from))?.lock();
            let original = original.as_ref().ok_or_else(|| not_found(from))?;
            original.fork(new, first, summary, self.clock.now())
        };
        let Some(log) = log else { return Ok(ForkOutcome::HistoryLost) };
        let at = log.head().created_at;
        table.insert(id, Arc::new(Session(Mutex::new(Some(log)))));
        Ok(ForkOutcome::Created { at })
    }

    /// All sessions.
    fn all(&self, now: Timestamp) -> Vec<SessionUsage> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let sessions: Vec<_> = table.values().cloned().collect();
        drop(table);
        let usage = |it: &Arc<Session>| it.lock().as_ref().map(|log| log.usage_at(now));
        sessions.iter().filter_map(usage).collect()
    }

    fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let after = match &page.after {
            None => None,
            Some(id) => Some(self.with(id, |log| (log.head().created_at, id.clone()))?),
        };
        let now = self.clock.now();
        let mut found = self.all(now);
        found.retain(|it| passes(&it.head, filter, now));
        found.retain(|it| after.as_ref().is_none_or(|after| place(&it.head) < *after));
        found.sort_unstable_by_key(|it| std::cmp::Reverse(place(&it.head)));
        found.truncate(page.limit.min(MAX_PAGE) as usize);
        Ok(found)
    }

    /// The sessions that went.
    fn delete(&self, id: &SessionId) -> Vec<SessionId> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        Self::remove(&mut table, id)
    }

    /// The sessions that went.
    fn purge(&self, purge: &Purge) -> Vec<SessionId> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let head = |it: &Arc<Session>| it.lock().as_ref().map(|log| log.head_at(now));
        let heads: Vec<_> = table.values().filter_map(head).collect();
        let roots = purge.roots(&heads);
        roots.iter().flat_map(|root| Self::remove(&mut table, root)).collect()
    }

    /// Takes a session out, and all below it; returns them.
    fn remove(table: &mut HashMap<SessionId, Arc<Session>>, id: &SessionId) -> Vec<SessionId> {
        if !table.contains_key(id) {
            return Vec::new();
        }
        let mut children: HashMap<SessionId, Vec<SessionId>> = HashMap::new();
        for (child, session) in table.iter() {
            let log = session.lock();
            let parent = log.as_ref().and_then(|log| log.head().created.parent.clone());
            if let Some(parent) = parent {
                children.entry(parent).or_default().push(child.clone());
            }
        }
        let mut gone = Vec::new();
        let mut going = vec![id.clone()];
        while let Some(id) = going.pop() {
            going.extend(children.remove(&id).unwrap_or_default());
            if let Some(session) = table.remove(&id) {
                drop(session.lock().take());
                gone.push(id);
            }
        }
        gone
    }
}

/// A session's place in a list; the highest comes first.
fn place(head: &Head) -> (Timestamp, SessionId) {
    (head.created_at, head.session.clone())
}

fn passes(head: &Head, filter: &SessionFilter, now: Timestamp) -> bool {
    fn is<T: PartialEq>(asked: Option<&T>, found: &T) -> bool {
        asked.is_none_or(|asked| asked == found)
    }
    let summary = &head.summary;
    let expired = || summary.run.is_some() && head.lease_until.is_none_or(|until| until <= now);
    let due = || summary.wake_at.is_some_and(|at| at <= now);
    is(filter.agent.as_ref(), &head.created.agent)
        && is(filter.status.as_ref(), &summary.status)
        && is(filter.root.as_ref(), &head.created.root)
        && is(filter.runtime.as_ref(), &summary.runtime)
        && (!filter.pending || summary.pending > 0)
        && (!filter.lease_expired || expired())
        && (!filter.wake_due || due())
        && filter.is_created_in_range(head.created_at)
}

fn not_found(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionNotFound, "no such session").with_context("session", session)
}

impl MemoryStore {
    fn now(&self) -> Timestamp {
        self.inner.sessions.clock.now()
    }
}

#[async_trait]
impl StateStore for MemoryStore {
    fn reach(&self) -> StoreScope {
        StoreScope::Process
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        let gone = "it is kept in the memory of the process, and gone with it";
        vec![
            Guarantee::not_given(GuaranteeKind::SurvivesKill, gone),
            Guarantee::not_given(GuaranteeKind::SurvivesPowerLoss, gone),
            Guarantee::not_given(
                GuaranteeKind::SharedByProcesses,
                "no other process sees the memory of this one",
            ),
        ]
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.inner
            .sessions
            .create(new, first)
            .map_err(|error| error.with_operation("store::create_session"))
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.inner
            .sessions
            .fork(from, new, first)
            .map_err(|error| error.with_operation("store::fork"))
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        let session = append.session.clone();
        append
            .check()
            .and_then(|()| self.inner.sessions.with(&session, |log| log.append(append, self.now())))
            .map_err(|error| error.with_operation("store::append"))
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.inner
            .sessions
            .with(session, |log| log.read(after, limit))
            .map_err(|error| error.with_operation("store::read_log"))
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        let session = self.inner.sessions.find(session);
        Ok(session.and_then(|it| it.lock().as_ref().map(|log| log.head_at(self.now()))))
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let found = self.inner.sessions.list(filter, page);
        let found = found.map_err(|error| error.with_operation("store::list"))?;
        Ok(found.into_iter().map(|it| it.head).collect())
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let found = self.inner.sessions.list(filter, page);
        found.map_err(|error| error.with_operation("store::list_usage"))
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.inner
            .sessions
            .with(session, |log| log.renew(run, ttl, self.now()))
            .map_err(|error| error.with_operation("store::renew"))
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        snapshot.check().map_err(|error| error.with_operation("store::save_snapshot"))?;
        if let Some(session) = self.inner.sessions.find(session)
            && let Some(log) = session.lock().as_mut()
        {
            log.save_snapshot(snapshot);
        }
        Ok(())
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        let session = self.inner.sessions.find(session);
        Ok(session.and_then(|it| it.lock().as_ref().and_then(|log| log.snapshot().cloned())))
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        let gone = self.inner.sessions.delete(session);
        if !mutant!("stream-left") {
            self.inner.streams.forget(&gone);
        }
        Ok(!gone.is_empty())
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        let gone = self.inner.sessions.purge(purge);
        self.inner.streams.forget(&gone);
        Ok(gone.len() as u64)
    }
}
