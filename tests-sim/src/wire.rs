//! The network between one process and the store. Requests and answers are late, lost or repeated, as far as the
//! contracts of stores and streams permit.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_conformance::rng::Rng;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::mutant;
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend, WriteQueue,
};
use helix_agents_core::stream::{
    Batch, BatchReceipt, ChunkStream, Receipts, StreamInfo, StreamManager,
};
use helix_agents_testkit::trees::{ProcessLife, RunProcesses};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::checked_store::CheckedStore;
use crate::marks::{Mark, Reached};
use crate::parameters::{Fault, Story};

/// The time after which an unanswered request fails.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(40);

/// The maximum delay of a request.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(180);

/// One request in this many stalls its process, in a story with such stalls.
const STALLS_ONCE_IN: usize = 30;

/// The direction in which a process is disconnected from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The process is connected.
    Whole,
    /// Requests do not arrive.
    Requests,
    /// Requests arrive, and the answers are lost.
    Answers,
}

/// The kind of a request, as far as it matters for faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A write that may be repeated.
    Write,
    Read,
    List,
    /// A deletion. Only the first request reports whether the session existed.
    Delete,
    Stream,
}

/// The delivery of a request.
#[derive(Debug, Clone, Copy)]
enum Delivery {
    /// It is answered after this time.
    OnTime(Duration),
    /// The store answers at once, and the answer arrives after this time: it shows an earlier state then.
    Stale(Duration),
    /// It does not reach the store, and fails after this time.
    Hangs(Duration),
    Lost,
    Unanswered,
    /// It reaches the store after the first time, and its answer arrives after the second.
    Late(Duration, Duration),
    /// It reaches the store again after this time.
    Twice(Duration),
}

/// The network of one process.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) store: Arc<CheckedStore>,
    pub(crate) life: ProcessLife,
    pub(crate) lives: RunProcesses,
    pub(crate) story: Story,
    pub(crate) reached: Reached,
    /// Whether all faults have stopped.
    pub(crate) calm: Arc<AtomicBool>,
    cut: Mutex<Cut>,
    streams_unavailable: AtomicBool,
    /// The last batches of each stream that this process wrote. The store behind the wire has one memory for all
    /// processes, which other processes can fill while this one is stalled.
    receipts: Arc<Mutex<HashMap<SessionId, Receipts>>>,
}

impl Wire {
    pub(crate) fn new(
        store: Arc<CheckedStore>,
        life: ProcessLife,
        lives: RunProcesses,
        story: Story,
        reached: Reached,
        calm: Arc<AtomicBool>,
    ) -> Arc<Self> {
        let (cut, streams_unavailable) = (Mutex::new(Cut::Whole), AtomicBool::new(false));
        let receipts = Arc::default();
        Arc::new(Self {
            store,
            life,
            lives,
            story,
            reached,
            calm,
            cut,
            streams_unavailable,
            receipts,
        })
    }

    /// Disconnects the process from the store, or reconnects it.
    pub(crate) fn cut(&self, cut: Cut) {
        *self.cut.lock().unwrap_or_else(PoisonError::into_inner) = cut;
    }

    /// Makes the streams unavailable for the process, or available again.
    pub(crate) fn set_streams_unavailable(&self, unavailable: bool) {
        self.streams_unavailable.store(unavailable, Ordering::Relaxed);
    }

    /// Stalls the process. It continues as if nothing had happened.
    pub(crate) fn stall(&self, lasts: Duration) {
        if lasts > self.story.lease() {
            self.reached.note(Mark::StallBeyondLease);
        }
        self.store.invariants().record_trouble(self.life.number(), lasts);
        self.life.stand_still();
        let life = self.life.clone();
        drop(tokio::spawn(async move {
            sleep(lasts).await;
            life.wake();
        }));
    }

    /// Stalls the process at this request, if the story has such stalls.
    async fn stall_at_request(&self, kind: Kind) {
        let stalls = self.story.has(Fault::StallsAtRequests) && !self.calm.load(Ordering::Relaxed);
        if !stalls || !matches!(kind, Kind::Write | Kind::Stream) {
            return;
        }
        let lease = self.story.lease();
        let lasts = |rng: &mut Rng| rng.once_in(STALLS_ONCE_IN).then(|| up_to(rng, lease * 4));
        if let Some(lasts) = self.life.roll(lasts) {
            self.reached.note(Mark::StallAtRequest);
            self.stall(lasts);
            self.life.awake().await;
        }
    }

    fn delivery(&self, kind: Kind) -> Delivery {
        let cut = *self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        let unavailable = match kind {
            Kind::Stream => self.streams_unavailable.load(Ordering::Relaxed),
            _ => false,
        };
        match cut {
            _ if self.calm.load(Ordering::Relaxed) => Delivery::OnTime(Duration::ZERO),
            _ if unavailable => self.unavailable(),
            Cut::Requests => Delivery::Lost,
            Cut::Answers => Delivery::Unanswered,
            Cut::Whole => self.life.roll(|rng| self.roll(kind, rng)),
        }
    }

    /// Returns the delivery of a request to unavailable streams: it fails at once, or hangs, at times for longer than
    /// the lease.
    fn unavailable(&self) -> Delivery {
        if !self.story.has(Fault::Hangs) {
            return Delivery::Lost;
        }
        let lease = self.story.lease();
        self.life.roll(|rng| {
            if rng.once_in(4) { Delivery::Hangs(up_to(rng, lease * 2)) } else { Delivery::Lost }
        })
    }

    fn roll(&self, kind: Kind, rng: &mut Rng) -> Delivery {
        let (story, lease) = (self.story, self.story.lease());
        if story.has(Fault::Lost) && kind != Kind::Delete && rng.once_in(40) {
            return if rng.once_in(2) { Delivery::Lost } else { Delivery::Unanswered };
        }
        if story.has(Fault::Doubled) && kind == Kind::Write && rng.once_in(25) {
            return Delivery::Twice(up_to(rng, lease * 2));
        }
        if story.has(Fault::Stale) && kind == Kind::List && rng.once_in(2) {
            self.reached.note(Mark::StaleList);
            return Delivery::Stale(up_to(rng, lease));
        }
        if story.has(Fault::Late) && rng.once_in(80) {
            let most = match kind {
                // A handle remembers its last 64 batches of a stream. Older batches do not arrive again.
                Kind::Stream => lease / 8,
                _ if rng.once_in(10) => MAX_DELAY,
                _ => lease * 3,
            };
            let (there, back) = (up_to(rng, most), up_to(rng, most));
            return Delivery::Late(there, if rng.once_in(2) { back } else { Duration::ZERO });
        }
        Delivery::OnTime(up_to(rng, Duration::from_millis(3)))
    }

    /// Records that the process cannot renew its leases for the given time.
    fn record_trouble(&self, kind: Kind, lasts: Duration) {
        if kind != Kind::Stream {
            self.store.invariants().record_trouble(self.life.number(), lasts);
        }
    }

    async fn send_request<T, F>(
        &self,
        kind: Kind,
        operation: impl Fn(Arc<CheckedStore>) -> F + Send + Sync + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        if self.store.is_endless() {
            // The story has ended, and reports that.
            std::future::pending::<()>().await;
        }
        self.life.tick().await;
        self.stall_at_request(kind).await;
        let answer = self.carry(kind, operation).await;
        self.life.tick().await;
        answer
    }

    async fn carry<T, F>(
        &self,
        kind: Kind,
        operation: impl Fn(Arc<CheckedStore>) -> F + Send + Sync + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (store, delivery) = (Arc::clone(&self.store), self.delivery(kind));
        if !matches!(delivery, Delivery::OnTime(_)) {
            store.trace().note("request", &(self.life.number(), kind, delivery));
        }
        match delivery {
            Delivery::OnTime(wait) => {
                if !wait.is_zero() {
                    sleep(wait).await;
                }
                operation(store).await
            }
            Delivery::Stale(wait) => {
                let answer = operation(store).await;
                sleep(wait).await;
                answer
            }
            Delivery::Hangs(wait) => {
                self.reached.note(Mark::StreamHangs);
                sleep(wait).await;
                Err(lost())
            }
            Delivery::Lost => {
                self.reached.note(Mark::RequestLost);
                self.record_trouble(kind, ANSWER_TIMEOUT);
                sleep(ANSWER_TIMEOUT).await;
                Err(lost())
            }
            Delivery::Unanswered => {
                self.reached.note(Mark::AnswerLost);
                self.record_trouble(kind, ANSWER_TIMEOUT);
                operation(store).await?;
                sleep(ANSWER_TIMEOUT).await;
                Err(lost())
            }
            Delivery::Late(there, back) => {
                if there + back > self.story.lease() {
                    self.reached.note(Mark::Late);
                }
                self.record_trouble(kind, there + back);
                // A request on its way does not depend on the process, which may crash meanwhile.
                let (answer, answered) = oneshot::channel();
                drop(tokio::spawn(async move {
                    sleep(there).await;
                    let done = operation(store).await;
                    sleep(back).await;
                    drop(answer.send(done));
                }));
                answered.await.unwrap_or_else(|_| Err(lost()))
            }
            Delivery::Twice(later) => {
                let answer = operation(Arc::clone(&store)).await;
                let (reached, number) = (self.reached.clone(), self.life.number());
                drop(tokio::spawn(async move {
                    sleep(later).await;
                    reached.note(Mark::Doubled);
                    // Its effect is no sign of life of the sender.
                    store.invariants().record_trouble(number, Duration::ZERO);
                    drop(operation(store).await);
                }));
                answer
            }
        }
    }
}

fn up_to(rng: &mut Rng, most: Duration) -> Duration {
    Duration::from_millis(rng.below(most.as_millis() as usize + 1) as u64)
}

fn lost() -> Error {
    Error::new(ErrorCode::StoreUnavailable, "simulated: there is no answer")
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for Wire {
    fn scope(&self) -> StoreScope {
        self.store.scope()
    }

    fn max_append_bytes(&self) -> usize {
        self.store.max_append_bytes()
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.store.guarantees()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        let run = first.run.clone();
        let create = move |store: Arc<CheckedStore>| {
            let (new, first) = (new.clone(), first.clone());
            async move { store.create_session(new, first).await }
        };
        let outcome = self.send_request(Kind::Write, create).await?;
        if matches!(outcome, CreateOutcome::Created { .. }) {
            self.lives.note(run.as_ref(), &self.life);
        }
        Ok(outcome)
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        let from = from.clone();
        self.send_request(Kind::Write, move |store| {
            let (from, new, first) = (from.clone(), new.clone(), first.clone());
            async move { store.fork(&from, new, first).await }
        })
        .await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        let run = append.run.clone();
        let write = move |store: Arc<CheckedStore>| {
            let append = append.clone();
            async move { store.append(append).await }
        };
        let outcome = self.send_request(Kind::Write, write).await?;
        if matches!(outcome, AppendOutcome::Appended { .. }) {
            self.lives.note(run.as_ref(), &self.life);
        }
        Ok(outcome)
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        let session = session.clone();
        self.send_request(Kind::Read, move |store| {
            let session = session.clone();
            async move { store.read_log(&session, after, limit).await }
        })
        .await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        let session = session.clone();
        self.send_request(Kind::Read, move |store| {
            let session = session.clone();
            async move { store.head(&session).await }
        })
        .await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let (filter, page) = (filter.clone(), page.clone());
        self.send_request(Kind::List, move |store| {
            let (filter, page) = (filter.clone(), page.clone());
            async move { store.list(&filter, &page).await }
        })
        .await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let (filter, page) = (filter.clone(), page.clone());
        self.send_request(Kind::List, move |store| {
            let (filter, page) = (filter.clone(), page.clone());
            async move { store.list_usage(&filter, &page).await }
        })
        .await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        let (session, run) = (session.clone(), run.clone());
        self.send_request(Kind::Write, move |store| {
            let (session, run) = (session.clone(), run.clone());
            async move { store.renew(&session, &run, ttl).await }
        })
        .await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        let session = session.clone();
        self.send_request(Kind::Write, move |store| {
            let (session, snapshot) = (session.clone(), snapshot.clone());
            async move { store.save_snapshot(&session, snapshot).await }
        })
        .await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        let session = session.clone();
        self.send_request(Kind::Read, move |store| {
            let session = session.clone();
            async move { store.snapshot(&session).await }
        })
        .await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.delete_if(session, &BTreeMap::new()).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let (session, required_tags) = (session.clone(), required_tags.clone());
        self.send_request(Kind::Delete, move |store| {
            let (session, required_tags) = (session.clone(), required_tags.clone());
            async move { store.delete_if(&session, &required_tags).await }
        })
        .await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        let purge = purge.clone();
        self.send_request(Kind::Delete, move |store| {
            let purge = purge.clone();
            async move { store.purge(&purge).await }
        })
        .await
    }
}

#[async_trait]
impl StreamManager for Wire {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        let (stream, receipts) = (stream.clone(), Arc::clone(&self.receipts));
        self.send_request(Kind::Stream, move |store| {
            let (stream, batch, receipts) = (stream.clone(), batch.clone(), Arc::clone(&receipts));
            async move {
                let id = batch.id;
                let lock = || receipts.lock().unwrap_or_else(PoisonError::into_inner);
                let known = lock().get(&stream).and_then(|last| last.find(id).cloned());
                if let Some(written) = known.filter(|_| !mutant!("answers-forgotten")) {
                    return Ok(written);
                }
                let written = store.write(&stream, batch).await?;
                lock().entry(stream).or_default().insert(id, written.clone());
                Ok(written)
            }
        })
        .await
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        let stream = stream.clone();
        self.send_request(Kind::Stream, move |store| {
            let stream = stream.clone();
            async move { store.read(&stream, from).await }
        })
        .await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        let stream = stream.clone();
        self.send_request(Kind::Stream, move |store| {
            let stream = stream.clone();
            async move { store.info(&stream).await }
        })
        .await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        let stream = stream.clone();
        self.send_request(Kind::Stream, move |store| {
            let stream = stream.clone();
            async move { store.reset(&stream).await }
        })
        .await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        let (stream, seen) = (stream.clone(), seen.clone());
        self.send_request(Kind::Stream, move |store| {
            let (stream, seen) = (stream.clone(), seen.clone());
            async move { store.forget(&stream, &seen).await }
        })
        .await
    }
}
