//! The state store: all sessions.

use std::collections::{BTreeMap, HashMap};
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

/// Sessions by id. One lock guards the table and is held only for lookups. Each session has a lock
/// of its own, so sessions do not block each other.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    clock: StoreClock,
    table: RwLock<HashMap<SessionId, Arc<Session>>>,
}

/// A session's log. It is `None` after deletion, for callers that looked the session up before.
#[derive(Debug)]
struct Session(Mutex<Option<Log>>);

impl Session {
    // Ignoring poison is safe: a panic under this lock is a bug in this crate and has already been
    // reported. The log is still consistent, because no code between its changes can panic.
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

    /// Runs `work` on a session's log.
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
            let same = created.filter(|append| append.id == first.id);
            return Ok(same
                .map_or(CreateOutcome::Exists, |append| CreateOutcome::Created { at: append.at }));
        }
        if first.required_parent(&new).is_some_and(|parent| !table.contains_key(parent)) {
            return Ok(CreateOutcome::ParentMissing);
        }
        let (id, now) = (first.session.clone(), self.clock.now());
        let log = Log::create(new, first, summary, now);
        table.insert(id, Arc::new(Session(Mutex::new(Some(log)))));
        Ok(CreateOutcome::Created { at: now })
    }

    fn append(&self, append: Append) -> Result<AppendOutcome> {
        append.check()?;
        let session = self.find(&append.session).ok_or_else(|| not_found(&append.session))?;
        let mut log = session.lock();
        let log = log.as_mut().ok_or_else(|| not_found(&append.session))?;
        Ok(log.append(append, self.clock.now()))
    }

    fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        let summary = first.check_fork(from, &new)?.clone();
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = table.get(&first.session) {
            let log = session.lock();
            let created = log.as_ref().and_then(|log| log.created_at(&first.expected));
            let same = created.filter(|append| append.id == first.id);
            return Ok(
                same.map_or(ForkOutcome::Exists, |append| ForkOutcome::Created { at: append.at })
            );
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

    /// Returns the usage of all sessions.
    fn all(&self, now: Timestamp) -> Vec<SessionUsage> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let sessions: Vec<_> = table.values().cloned().collect();
        drop(table);
        let usage = |session: &Arc<Session>| session.lock().as_ref().map(|log| log.usage_at(now));
        sessions.iter().filter_map(usage).collect()
    }

    fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        filter.check()?;
        let after = match &page.after {
            None => None,
            Some(id) => Some(self.with(id, |log| (log.head().created_at, id.clone()))?),
        };
        let now = self.clock.now();
        let mut found = self.all(now);
        found.retain(|session| passes(&session.head, filter, now));
        found.retain(|session| after.as_ref().is_none_or(|after| place(&session.head) < *after));
        found.sort_unstable_by_key(|session| std::cmp::Reverse(place(&session.head)));
        found.truncate(page.limit.min(MAX_PAGE) as usize);
        Ok(found)
    }

    /// Deletes a session that has these tags, and its descendants. Returns the deleted sessions.
    fn delete_if(
        &self,
        id: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Vec<SessionId> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let has_tags = |session: &Arc<Session>| {
            session.lock().as_ref().is_some_and(|log| log.head().created.has_tags(required_tags))
        };
        if table.get(id).is_some_and(has_tags) { Self::remove(&mut table, id) } else { Vec::new() }
    }

    /// Deletes the sessions that `purge` selects. Returns the deleted sessions.
    fn purge(&self, purge: &Purge) -> Vec<SessionId> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let head = |session: &Arc<Session>| session.lock().as_ref().map(|log| log.head_at(now));
        let heads: Vec<_> = table.values().filter_map(head).collect();
        let roots = purge.roots(&heads);
        roots.iter().flat_map(|root| Self::remove(&mut table, root)).collect()
    }

    /// Removes a session and all its descendants from the table. Returns the removed sessions.
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
        let mut removed = Vec::new();
        let mut remaining = vec![id.clone()];
        while let Some(id) = remaining.pop() {
            remaining.extend(children.remove(&id).unwrap_or_default());
            if let Some(session) = table.remove(&id) {
                drop(session.lock().take());
                removed.push(id);
            }
        }
        removed
    }
}

/// Returns the sort key of a session in a list. The highest key comes first.
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
        && head.created.has_tags(&filter.tags)
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
    fn scope(&self) -> StoreScope {
        StoreScope::Process
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        let lost = "data lives in the memory of the process and is lost with it";
        vec![
            Guarantee::not_provided(GuaranteeKind::SurvivesKill, lost),
            Guarantee::not_provided(GuaranteeKind::SurvivesPowerLoss, lost),
            Guarantee::not_provided(
                GuaranteeKind::SharedByProcesses,
                "the memory of this process is not visible to other processes",
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
        self.inner.sessions.append(append).map_err(|error| error.with_operation("store::append"))
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
        Ok(session.and_then(|session| session.lock().as_ref().map(|log| log.head_at(self.now()))))
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let found = self.inner.sessions.list(filter, page);
        let found = found.map_err(|error| error.with_operation("store::list"))?;
        Ok(found.into_iter().map(|session| session.head).collect())
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
        Ok(session
            .and_then(|session| session.lock().as_ref().and_then(|log| log.snapshot().cloned())))
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let deleted = self.inner.sessions.delete_if(session, required_tags);
        if !mutant!("stream-left") {
            self.inner.streams.forget(&deleted);
        }
        Ok(!deleted.is_empty())
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        let deleted = self.inner.sessions.purge(purge);
        self.inner.streams.forget(&deleted);
        Ok(deleted.len() as u64)
    }
}
