//! The store and the streams themselves, without a network in between. Every operation is recorded and compared with
//! the reference model, and every append is checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, Timestamp};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend, WriteQueue,
};
use helix_agents_core::stream::{
    Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager, StreamOp,
};
use helix_agents_store_memory::{MemoryOptions, MemoryStore};

use crate::invariants::Invariants;
use crate::marks::{Mark, Reached};
use crate::model::Model;
use crate::time::SimClock;
use crate::trace::Trace;

/// The store of a world.
#[derive(Debug)]
pub(crate) struct CheckedStore {
    store: MemoryStore,
    pub(crate) clock: Arc<SimClock>,
    trace: Arc<Trace>,
    reached: Reached,
    /// The maximum size of one append, in bytes.
    limit: usize,
    model: Mutex<Model>,
    invariants: Mutex<Invariants>,
    /// The roots that were deleted or purged.
    gone: Mutex<BTreeSet<SessionId>>,
}

impl CheckedStore {
    pub(crate) fn new(
        clock: Arc<SimClock>,
        trace: Arc<Trace>,
        reached: Reached,
        invariants: Invariants,
        limit: usize,
    ) -> Arc<Self> {
        let by = Arc::<SimClock>::clone(&clock);
        let store = MemoryStore::with_clock(MemoryOptions::default(), by);
        let (model, invariants, gone) =
            (Mutex::default(), Mutex::new(invariants), Mutex::default());
        Arc::new(Self { store, clock, trace, reached, limit, model, invariants, gone })
    }

    pub(crate) fn invariants(&self) -> MutexGuard<'_, Invariants> {
        self.invariants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if the root was deleted or purged.
    pub(crate) fn is_gone(&self, root: &SessionId) -> bool {
        self.gone().contains(root)
    }

    /// Returns `true` if any root was deleted or purged.
    pub(crate) fn is_any_gone(&self) -> bool {
        !self.gone().is_empty()
    }

    /// Returns the roots that are forks of other sessions.
    pub(crate) fn forks(&self) -> Vec<SessionId> {
        self.invariants().forks().collect()
    }

    fn gone(&self) -> MutexGuard<'_, BTreeSet<SessionId>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records which of the previous roots are gone.
    fn forget(&self, before: &BTreeSet<SessionId>) {
        let after = self.model().roots();
        self.gone().extend(before.difference(&after).cloned());
        let model = self.model();
        self.invariants().forget(|session| model.version(session) == 0);
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the trace of the world.
    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns `true` if the story is in an endless loop.
    pub(crate) fn is_endless(&self) -> bool {
        self.trace.is_endless()
    }

    /// Compares an answer with the model's answer, and records it.
    fn agree<T: Debug + PartialEq>(
        &self,
        operation: &str,
        session: &SessionId,
        answer: &Result<T>,
        expected: Option<&T>,
    ) {
        self.trace.note(operation, &(session, answer.as_ref().ok()));
        let same = match (answer, expected) {
            (Ok(answer), Some(expected)) => answer == expected,
            (Err(error), None) => error.code() == ErrorCode::SessionNotFound,
            _ => false,
        };
        if !same {
            let what = format!("{operation} returned {answer:?}, the model returned {expected:?}");
            self.invariants().add_problem(session, &what);
        }
    }

    /// Checks what was appended to a session after a version.
    fn appended(&self, session: &SessionId, since: u64) {
        let appends = self.model().read(session, since, u32::MAX).unwrap_or_default();
        for append in &appends {
            self.trace.note("logged", &(session, append));
            self.invariants().appended(session, append);
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for CheckedStore {
    fn scope(&self) -> StoreScope {
        StoreScope::Network
    }

    fn max_append_bytes(&self) -> usize {
        self.limit
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.store.guarantees()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        let (session, run) = (first.session.clone(), first.run.clone());
        let since = self.model().version(&session);
        let expected = self.model().create(new.clone(), first.clone(), self.now());
        let answer = self.store.create_session(new, first).await;
        self.agree("create", &session, &answer, expected.as_ref());
        if let (Ok(CreateOutcome::Created { .. }), Some(run)) = (&answer, &run) {
            self.invariants().record_sign(run, true);
        }
        self.appended(&session, since);
        answer
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        let session = first.session.clone();
        let since = self.model().version(&session);
        let expected = self.model().fork(from, new.clone(), first.clone(), self.now());
        let answer = self.store.fork(from, new, first).await;
        self.agree("fork", &session, &answer, expected.as_ref());
        let appends = self.model().read(&session, since, u32::MAX).unwrap_or_default();
        if let [shared @ .., last] = &*appends {
            for append in shared {
                self.invariants().shared(&session, append);
            }
            self.appended(&session, last.first - 1);
        }
        answer
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        if append.body.len() > self.limit / 10 {
            self.reached.note(Mark::LargeAppend);
        }
        if append.body.len() > self.limit {
            return Err(Error::new(ErrorCode::TooLarge, "the append is too large for the store"));
        }
        let (session, run) = (append.session.clone(), append.run.clone());
        let since = self.model().version(&session);
        let expected = self.model().append(append.clone(), self.now());
        let answer = self.store.append(append).await;
        self.agree("append", &session, &answer, expected.as_ref());
        match &answer {
            Ok(AppendOutcome::Appended { .. }) => {
                if let Some(run) = &run {
                    self.invariants().record_sign(run, true);
                }
            }
            Ok(AppendOutcome::Conflict { .. }) => {
                self.reached.note(Mark::Conflict);
                if run.is_some_and(|run| self.invariants().is_superseded(&session, &run)) {
                    self.reached.note(Mark::LateOwnerFenced);
                }
            }
            Ok(AppendOutcome::GuardFailed { lease_until: Some(_), .. }) => {
                self.reached.note(Mark::LeaseInTheWay);
            }
            _ => {}
        }
        self.appended(&session, since);
        answer
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        let expected = self.model().read(session, after, limit);
        let answer = self.store.read_log(session, after, limit).await;
        self.agree("read", session, &answer, expected.as_ref());
        answer
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        let expected = self.model().head(session, self.now());
        let answer = self.store.head(session).await;
        self.agree("head", session, &answer, Some(&expected));
        answer
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let expected = self.model().list(filter, page, self.now());
        let answer = self.store.list(filter, page).await;
        self.agree("list", &SessionId::from(""), &answer, expected.as_ref());
        answer
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let expected = self.model().list_usage(filter, page, self.now());
        let answer = self.store.list_usage(filter, page).await;
        self.agree("list usage", &SessionId::from(""), &answer, expected.as_ref());
        answer
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        let expected = self.model().renew(session, run, ttl, self.now());
        let answer = self.store.renew(session, run, ttl).await;
        self.agree("renew", session, &answer, expected.as_ref());
        if answer.as_ref().is_ok_and(|answer| answer.renewed) {
            self.invariants().record_sign(run, !ttl.is_zero());
        }
        answer
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.model().save_snapshot(session, snapshot.clone());
        let answer = self.store.save_snapshot(session, snapshot).await;
        self.agree("save snapshot", session, &answer, Some(&()));
        answer
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        let expected = self.model().snapshot(session);
        let answer = self.store.snapshot(session).await;
        if matches!(answer, Ok(Some(_))) {
            self.reached.note(Mark::SnapshotRead);
        }
        self.agree("snapshot", session, &answer, Some(&expected));
        answer
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.delete_if(session, &BTreeMap::new()).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let before = self.model().roots();
        let expected = self.model().delete_if(session, required_tags) > 0;
        let answer = self.store.delete_if(session, required_tags).await;
        self.agree("delete", session, &answer, Some(&expected));
        self.forget(&before);
        answer
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        let before = self.model().roots();
        let expected = self.model().purge(purge, self.now());
        let answer = self.store.purge(purge).await;
        self.agree("purge", &SessionId::from(""), &answer, Some(&expected));
        if expected > 0 {
            self.reached.note(Mark::Purge);
        }
        self.forget(&before);
        answer
    }
}

#[async_trait]
impl StreamManager for CheckedStore {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.trace.note("write", &(stream, &batch));
        // Fencing tokens are timestamps. The token of a run may be greater than those of its successors if the store's
        // clock went back before its session was deleted and created again. No stream store can tell these runs apart.
        if self.clock.went_back() && self.invariants().is_of_deleted(&batch) {
            return Ok(BatchReceipt { is_superseded: true, ..BatchReceipt::default() });
        }
        // A run of a deleted session may write to the stream before the new session does. That is no problem.
        let is_late = self.invariants().is_before_successor(&batch);
        let written = self.store.write(stream, batch.clone()).await?;
        if !written.is_superseded {
            self.invariants().record_write(&batch);
        }
        // The watermarks of a superseded run are not checked.
        for op in batch.ops.iter().filter(|_| !written.is_superseded && !is_late) {
            let StreamOp::Watermark(mark) = op else { continue };
            let (session, version) =
                (&mark.origin.session, self.model().version(&mark.origin.session));
            // A run whose session was deleted learns of it with its next append.
            if mark.version > version && version > 0 {
                let what = format!(
                    "the stream's watermark is {}, the log ends at {version}",
                    mark.version
                );
                self.invariants().add_problem(session, &what);
            }
        }
        Ok(written)
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        self.trace.note("follow", &(stream, from));
        StreamManager::read(&self.store, stream, from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.trace.note("info", stream);
        self.store.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.trace.note("reset", stream);
        self.store.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        let done = self.store.forget(stream, seen).await;
        self.trace.note("forget", &(stream, done.as_ref().ok()));
        done
    }
}
