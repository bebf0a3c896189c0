//! The network between one process and the store: requests and answers that are late, lost, or come
//! twice, each as the contracts of stores and streams permit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
};
use helix_agents_core::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};
use helix_agents_testkit::trees::{ProcessLife, Rng, RunProcesses};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::knobs::{Fault, Story};
use crate::marks::{Mark, Reached};
use crate::witness::Witness;

/// How long a request that gets no answer is waited for.
const NO_ANSWER: Duration = Duration::from_millis(40);

/// The latest that a request is.
pub(crate) const LATEST: Duration = Duration::from_secs(180);

/// Which way a process is cut off from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It is not.
    Whole,
    /// Its requests do not arrive.
    Requests,
    /// They do, and the answers are lost.
    Answers,
}

/// What is asked, as far as faults are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Writing what may be written again.
    Write,
    Read,
    List,
    /// Deleting: whether a session was there is answered by the first.
    Forget,
    Stream,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy)]
enum Luck {
    /// It is answered after this time.
    Fine(Duration),
    /// The store answers at once, and the answer takes this time: it is of an earlier state then.
    Stale(Duration),
    /// It does not reach the store, and the process waits this time to learn that.
    Silent(Duration),
    Lost,
    Unanswered,
    /// It reaches the store late, and its answer the process.
    Late(Duration, Duration),
    /// It reaches the store once more, so much later.
    Twice(Duration),
}

/// The network of one process.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) witness: Arc<Witness>,
    pub(crate) life: ProcessLife,
    pub(crate) lives: RunProcesses,
    pub(crate) story: Story,
    pub(crate) reached: Reached,
    /// Whether all faults have stopped.
    pub(crate) calm: Arc<AtomicBool>,
    cut: Mutex<Cut>,
    streams_away: AtomicBool,
}

impl Wire {
    pub(crate) fn new(
        witness: Arc<Witness>,
        life: ProcessLife,
        lives: RunProcesses,
        story: Story,
        reached: Reached,
        calm: Arc<AtomicBool>,
    ) -> Arc<Self> {
        let (cut, streams_away) = (Mutex::new(Cut::Whole), AtomicBool::new(false));
        Arc::new(Self { witness, life, lives, story, reached, calm, cut, streams_away })
    }

    /// Cuts the process off from the store, or joins it again.
    pub(crate) fn cut(&self, cut: Cut) {
        *self.cut.lock().unwrap_or_else(PoisonError::into_inner) = cut;
    }

    /// Takes the streams away from the process, or gives them back.
    pub(crate) fn take_streams(&self, away: bool) {
        self.streams_away.store(away, Ordering::Relaxed);
    }

    fn luck(&self, kind: Kind) -> Luck {
        let cut = *self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        let away = match kind {
            Kind::Stream => self.streams_away.load(Ordering::Relaxed),
            _ => false,
        };
        match cut {
            _ if self.calm.load(Ordering::Relaxed) => Luck::Fine(Duration::ZERO),
            _ if away => self.away(),
            Cut::Requests => Luck::Lost,
            Cut::Answers => Luck::Unanswered,
            Cut::Whole => self.life.roll(|dice| self.roll(kind, dice)),
        }
    }

    /// A request to streams that are away: it fails at once, or hangs, at times for longer than the lease.
    fn away(&self) -> Luck {
        if !self.story.has(Fault::Hangs) {
            return Luck::Lost;
        }
        let lease = self.story.lease();
        self.life.roll(|dice| {
            if dice.once_in(4) { Luck::Silent(up_to(dice, lease * 2)) } else { Luck::Lost }
        })
    }

    fn roll(&self, kind: Kind, dice: &mut Rng) -> Luck {
        let (story, lease) = (self.story, self.story.lease());
        if story.has(Fault::Lost) && kind != Kind::Forget && dice.once_in(40) {
            return if dice.once_in(2) { Luck::Lost } else { Luck::Unanswered };
        }
        if story.has(Fault::Doubled) && kind == Kind::Write && dice.once_in(25) {
            return Luck::Twice(up_to(dice, lease * 2));
        }
        if story.has(Fault::Stale) && kind == Kind::List && dice.once_in(2) {
            self.reached.note(Mark::StaleList);
            return Luck::Stale(up_to(dice, lease));
        }
        if story.has(Fault::Late) && dice.once_in(80) {
            let most = match kind {
                // A store knows the last 64 batches of a stream. Others do not arrive again.
                Kind::Stream => lease / 8,
                _ if dice.once_in(10) => LATEST,
                _ => lease * 3,
            };
            let (there, back) = (up_to(dice, most), up_to(dice, most));
            return Luck::Late(there, if dice.once_in(2) { back } else { Duration::ZERO });
        }
        Luck::Fine(up_to(dice, Duration::from_millis(3)))
    }

    /// Notes that the process cannot show that it is alive for so long.
    fn trouble(&self, kind: Kind, lasts: Duration) {
        if kind != Kind::Stream {
            self.witness.always().trouble(self.life.number(), lasts);
        }
    }

    async fn ask<T, F>(
        &self,
        kind: Kind,
        operation: impl Fn(Arc<Witness>) -> F + Send + Sync + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        if self.witness.is_too_long() {
            // The story is over, and says so.
            std::future::pending::<()>().await;
        }
        self.life.tick().await;
        let answer = self.carry(kind, operation).await;
        self.life.tick().await;
        answer
    }

    async fn carry<T, F>(
        &self,
        kind: Kind,
        operation: impl Fn(Arc<Witness>) -> F + Send + Sync + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (witness, luck) = (Arc::clone(&self.witness), self.luck(kind));
        if !matches!(luck, Luck::Fine(_)) {
            witness.trace().tell("request", &(self.life.number(), kind, luck));
        }
        match luck {
            Luck::Fine(wait) => {
                if !wait.is_zero() {
                    sleep(wait).await;
                }
                operation(witness).await
            }
            Luck::Stale(wait) => {
                let answer = operation(witness).await;
                sleep(wait).await;
                answer
            }
            Luck::Silent(wait) => {
                self.reached.note(Mark::StreamHangs);
                sleep(wait).await;
                Err(lost())
            }
            Luck::Lost => {
                self.reached.note(Mark::RequestLost);
                self.trouble(kind, NO_ANSWER);
                sleep(NO_ANSWER).await;
                Err(lost())
            }
            Luck::Unanswered => {
                self.reached.note(Mark::AnswerLost);
                self.trouble(kind, NO_ANSWER);
                operation(witness).await?;
                sleep(NO_ANSWER).await;
                Err(lost())
            }
            Luck::Late(there, back) => {
                if there + back > self.story.lease() {
                    self.reached.note(Mark::Late);
                }
                self.trouble(kind, there + back);
                // On its way it is out of the hands of the process, which may die meanwhile.
                let (answer, answered) = oneshot::channel();
                drop(tokio::spawn(async move {
                    sleep(there).await;
                    let done = operation(witness).await;
                    sleep(back).await;
                    drop(answer.send(done));
                }));
                answered.await.unwrap_or_else(|_| Err(lost()))
            }
            Luck::Twice(later) => {
                let answer = operation(Arc::clone(&witness)).await;
                let (reached, number) = (self.reached.clone(), self.life.number());
                drop(tokio::spawn(async move {
                    sleep(later).await;
                    reached.note(Mark::Doubled);
                    // What it does is no sign of life of its sender.
                    witness.always().trouble(number, Duration::ZERO);
                    drop(operation(witness).await);
                }));
                answer
            }
        }
    }
}

fn up_to(dice: &mut Rng, most: Duration) -> Duration {
    Duration::from_millis(dice.below(most.as_millis() as usize + 1) as u64)
}

fn lost() -> Error {
    Error::new(ErrorCode::StoreUnavailable, "as arranged: there is no answer")
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for Wire {
    fn reach(&self) -> StoreScope {
        self.witness.reach()
    }

    fn max_append_bytes(&self) -> usize {
        self.witness.max_append_bytes()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.witness.guarantees()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.lives.note(first.run.as_ref(), &self.life);
        self.ask(Kind::Write, move |store| {
            let (new, first) = (new.clone(), first.clone());
            async move { store.create_session(new, first).await }
        })
        .await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        let from = from.clone();
        self.ask(Kind::Write, move |store| {
            let (from, new, first) = (from.clone(), new.clone(), first.clone());
            async move { store.fork(&from, new, first).await }
        })
        .await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.lives.note(append.run.as_ref(), &self.life);
        self.ask(Kind::Write, move |store| {
            let append = append.clone();
            async move { store.append(append).await }
        })
        .await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        let session = session.clone();
        self.ask(Kind::Read, move |store| {
            let session = session.clone();
            async move { store.read_log(&session, after, limit).await }
        })
        .await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        let session = session.clone();
        self.ask(Kind::Read, move |store| {
            let session = session.clone();
            async move { store.head(&session).await }
        })
        .await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let (filter, page) = (filter.clone(), page.clone());
        self.ask(Kind::List, move |store| {
            let (filter, page) = (filter.clone(), page.clone());
            async move { store.list(&filter, &page).await }
        })
        .await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let (filter, page) = (filter.clone(), page.clone());
        self.ask(Kind::List, move |store| {
            let (filter, page) = (filter.clone(), page.clone());
            async move { store.list_usage(&filter, &page).await }
        })
        .await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        let (session, run) = (session.clone(), run.clone());
        self.ask(Kind::Write, move |store| {
            let (session, run) = (session.clone(), run.clone());
            async move { store.renew(&session, &run, ttl).await }
        })
        .await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        let session = session.clone();
        self.ask(Kind::Write, move |store| {
            let (session, snapshot) = (session.clone(), snapshot.clone());
            async move { store.save_snapshot(&session, snapshot).await }
        })
        .await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        let session = session.clone();
        self.ask(Kind::Read, move |store| {
            let session = session.clone();
            async move { store.snapshot(&session).await }
        })
        .await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        let session = session.clone();
        self.ask(Kind::Forget, move |store| {
            let session = session.clone();
            async move { store.delete(&session).await }
        })
        .await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        let purge = purge.clone();
        self.ask(Kind::Forget, move |store| {
            let purge = purge.clone();
            async move { store.purge(&purge).await }
        })
        .await
    }
}

#[async_trait]
impl StreamManager for Wire {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        let stream = stream.clone();
        self.ask(Kind::Stream, move |store| {
            let (stream, batch) = (stream.clone(), batch.clone());
            async move { store.write(&stream, batch).await }
        })
        .await
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        let stream = stream.clone();
        self.ask(Kind::Stream, move |store| {
            let stream = stream.clone();
            async move { store.read(&stream, from).await }
        })
        .await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        let stream = stream.clone();
        self.ask(Kind::Stream, move |store| {
            let stream = stream.clone();
            async move { store.info(&stream).await }
        })
        .await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        let stream = stream.clone();
        self.ask(Kind::Stream, move |store| {
            let stream = stream.clone();
            async move { store.reset(&stream).await }
        })
        .await
    }

    async fn forget(&self, stream: &SessionId) -> Result<()> {
        let stream = stream.clone();
        self.ask(Kind::Stream, move |store| {
            let stream = stream.clone();
            async move { store.forget(&stream).await }
        })
        .await
    }
}
