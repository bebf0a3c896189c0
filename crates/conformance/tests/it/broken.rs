//! The reference store with one breakage.

mod state;
mod streams;
mod tags;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use helix_agents_conformance::backend_suite::{Backend, BackendHarness};
use helix_agents_conformance::store_suite::StoreHarness;
use helix_agents_conformance::stream_suite::StreamHarness;
use helix_agents_core::id::{BatchId, SessionId};
use helix_agents_core::store::{Head, SessionFilter, Snapshot, StateStore, StoreScope, WriteQueue};
use helix_agents_core::stream::StreamManager;
use helix_agents_core::usage::UsageRollup;
use helix_agents_store_memory::{MemoryOptions, MemoryStore};
use helix_agents_test::Gate;

/// A function that maps an id to the part that is kept of it.
pub(crate) type Loss = fn(&str) -> String;

/// One way to break a store.
#[derive(Clone, Copy)]
pub(crate) enum Breakage {
    /// Each handle has a clock of its own, seven seconds ahead of the previous handle's.
    ClockPerHandle,
    /// A lease is still held at the exact moment of its expiry.
    LeaseHeldAtItsEnd,
    /// A lease is free one millisecond before its expiry.
    LeaseFreeBeforeItsEnd,
    /// An append is refused at the exact moment of its deadline.
    DeadlineExcluded,
    /// A list omits sessions that become due, or expire, at this exact moment.
    MomentNotListed,
    /// A renewal never shortens a lease.
    RenewalOnlyExtends,
    /// A summary without a run clears the lease.
    LeaseEndsWithRun,
    /// A handle returns the head of its own last append.
    HeadOfWriterCached,
    /// A session is visible before its log.
    CreatedInParts,
    /// Sessions whose mapped ids are equal are the same session.
    Sessions(Loss),
    /// Appends whose mapped ids are equal are the same append.
    Appends(Loss),
    /// Runs whose mapped ids are equal are the same run.
    Runs(Loss),
    /// Only the ids of sessions are validated.
    IdsUnchecked,
    /// The schema of an append is stored in one byte.
    SchemaOfOneByte,
    /// The number of events of an append is stored in two bytes.
    CountOfTwoBytes,
    /// A conflict returns at most this many appends.
    Missed(usize),
    /// A child is created whether or not its parent exists.
    ParentUnchecked,
    /// A list is ordered by the last append.
    ListedByUpdate,
    /// A list is ordered by id alone.
    ListedByName,
    /// The age of a session is counted from its creation.
    PurgedByCreation,
    /// A deletion does not check the required tags.
    TagsNotRequired,
    /// Bodies stay when their session is deleted.
    BodiesKept,
    /// Streams stay when their session is purged.
    StreamsKept,
    /// A stream is forgotten even if it has changed.
    ForgetsChanged,
    /// Only this many batches of a stream are recognised.
    Answers(usize),
    /// The snapshot that was saved last is kept, whatever its version.
    LastSnapshot,
    /// Snapshots stay when their session is deleted.
    SnapshotsKept,
    /// A fork starts with the snapshot of its original.
    SnapshotsForked,
    /// Only the handle that saved a snapshot can read it.
    SnapshotsPerHandle,
    /// An append without usage clears it.
    UsageCleared,
    /// The usage of an append is kept even if the append is refused.
    UsageOfRefused,
    /// A fork starts with the usage of its original.
    UsageForked,
    /// Usage stays when its session is deleted.
    UsageKept,
    /// Usage is written after its append.
    UsageLater,
    /// Appends overtake batches, although both are said to go through one queue.
    QueueOvertaken,
    /// A mistake with the writers of batches.
    Writers(Mistake),
    /// A mistake with the index of tags.
    Tags(TagMistake),
}

/// A mistake with the writers of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Fencing tokens are not checked.
    TokensIgnored,
    /// Only the tokens of this handle's batches are known.
    OthersUnknown,
    /// Tokens are not checked for batches that have only chunks.
    ChunksTaken,
    /// Tokens are not checked for batches that start an attempt.
    TriesTaken,
    /// Tokens are not checked for batches that write a watermark.
    MarksTaken,
    /// A watermark supersedes no earlier run.
    MarksSupersedeNothing,
    /// An attempt supersedes no earlier run.
    TriesSupersedeNothing,
    /// Each handle is a run of its own.
    HandlesAreRuns,
    /// All sessions of a stream share one token.
    SessionsShareToken,
    /// Tokens stay when the stream is forgotten.
    TokensKept,
    /// A batch may be for another session.
    SessionsUnchecked,
    /// Watermarks of a deleted session count for its successor.
    CreationIgnored,
}

/// A mistake with the index of tags.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TagMistake {
    /// Tags of a filter are ignored.
    Ignored,
    /// Only the first tag of a filter is compared.
    FirstOnly,
    /// A list by tag ignores the other conditions of its filter.
    OthersIgnored,
    /// Each page of a list by tag starts at the newest session.
    Unpaged,
    /// Values whose mapped texts are equal are the same value.
    Values(Loss),
    /// A session is added to the index after it was created.
    Later,
    /// A fork has the tags of its original as well.
    Forked,
    /// Tags stay when their session is deleted.
    Kept,
    /// The tags of a refused creation count.
    OfRefused,
    /// At most this many tags of a session are kept.
    UpTo(usize),
    /// Tags are not checked.
    Unchecked,
}

impl fmt::Debug for Breakage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClockPerHandle => "a clock per handle",
            Self::LeaseHeldAtItsEnd => "leases that are held at their end",
            Self::LeaseFreeBeforeItsEnd => "leases that are free before their end",
            Self::DeadlineExcluded => "deadlines that exclude their moment",
            Self::MomentNotListed => "lists that omit this moment",
            Self::RenewalOnlyExtends => "renewals that only extend",
            Self::LeaseEndsWithRun => "leases that end with their run",
            Self::HeadOfWriterCached => "a cached head",
            Self::CreatedInParts => "sessions that are created in parts",
            Self::Sessions(_) => "session ids that are stored incompletely",
            Self::Appends(_) => "append ids that are stored incompletely",
            Self::Runs(_) => "run ids that are stored incompletely",
            Self::IdsUnchecked => "ids that are not checked",
            Self::SchemaOfOneByte => "schemas of one byte",
            Self::CountOfTwoBytes => "counts of two bytes",
            Self::Missed(_) => "conflicts that omit appends",
            Self::ParentUnchecked => "parents that are not checked",
            Self::ListedByUpdate => "lists by the last append",
            Self::ListedByName => "lists by name",
            Self::PurgedByCreation => "purges by creation",
            Self::BodiesKept => "bodies that are kept",
            Self::StreamsKept => "streams that are kept",
            Self::ForgetsChanged => "streams that are forgotten although they have changed",
            Self::Answers(_) => "too few recognised batches",
            Self::LastSnapshot => "the last snapshot instead of the newest",
            Self::SnapshotsKept => "snapshots that are kept",
            Self::SnapshotsForked => "snapshots that are forked",
            Self::SnapshotsPerHandle => "snapshots per handle",
            Self::UsageCleared => "usage that is cleared",
            Self::UsageOfRefused => "usage of refused appends",
            Self::UsageForked => "usage that is forked",
            Self::UsageKept => "usage that is kept",
            Self::UsageLater => "usage that comes later",
            Self::QueueOvertaken => "batches that are overtaken",
            Self::TagsNotRequired => "deletions that do not check the tags",
            Self::Tags(mistake) => return write!(f, "a mistake with tags: {mistake:?}"),
            Self::Writers(mistake) => return write!(f, "a mistake with writers: {mistake:?}"),
        })
    }
}

/// The state that all handles of one harness share.
#[derive(Debug)]
struct Shared {
    sessions: MemoryStore,
    /// A separate store, for streams that are not deleted with their sessions.
    streams: MemoryStore,
    broken: Option<Breakage>,
    handles: AtomicU32,
    /// The first ids of sessions, by the part that is kept of them.
    names: Mutex<HashMap<String, SessionId>>,
    /// Sessions that exist partly.
    partly: Mutex<Vec<SessionId>>,
    /// Opened when a partly existing session was read.
    seen: Gate,
    /// The bodies of deleted sessions.
    attic: Mutex<Vec<Bytes>>,
    /// The batches that were written, newest first.
    written: Mutex<HashMap<SessionId, VecDeque<BatchId>>>,
    /// Snapshots that are kept wrongly.
    snapshots: Mutex<HashMap<SessionId, Snapshot>>,
    /// Usage that is kept wrongly.
    usages: Mutex<HashMap<SessionId, Option<Arc<UsageRollup>>>>,
    /// The index of tags.
    tags: Mutex<HashMap<SessionId, Vec<(String, String)>>>,
    /// Number of lists of usage, and by tag.
    looks: AtomicU32,
    /// The highest fencing token, by stream and by session.
    tokens: Mutex<HashMap<(SessionId, SessionId), u64>>,
    write_queue: WriteQueue,
}

/// A handle of a store with one breakage or none.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    shared: Arc<Shared>,
    number: u32,
    /// The heads of this handle's own last appends.
    heads: Arc<Mutex<HashMap<SessionId, Head>>>,
    /// The snapshots that this handle saved.
    snapshots: Arc<Mutex<HashMap<SessionId, Snapshot>>>,
    /// The highest fencing tokens of this handle's batches.
    tokens: Arc<Mutex<HashMap<(SessionId, SessionId), u64>>>,
}

impl Broken {
    fn breakage(&self) -> Option<Breakage> {
        self.shared.broken
    }

    /// Returns the queue that all writes are said to go through.
    fn claimed_queue(&self) -> Option<WriteQueue> {
        matches!(self.breakage(), Some(Breakage::QueueOvertaken)).then_some(self.shared.write_queue)
    }

    /// Returns the session for which this id is mistaken.
    fn name(&self, session: &SessionId) -> SessionId {
        let Some(Breakage::Sessions(loss)) = self.breakage() else { return session.clone() };
        let mut names = self.shared.names.lock().unwrap();
        names.entry(loss(session.as_str())).or_insert_with(|| session.clone()).clone()
    }

    /// Returns the filter with the root for which its root is mistaken.
    fn filter(&self, filter: &SessionFilter) -> SessionFilter {
        let mut filter = filter.clone();
        filter.root = filter.root.as_ref().map(|root| self.name(root));
        filter
    }
}

/// A harness that opens handles of one broken store.
#[derive(Debug)]
pub(crate) struct Harness(Arc<Shared>);

/// Returns a harness without a breakage.
pub(crate) async fn sound() -> Harness {
    Harness::with(None)
}

impl Harness {
    pub(crate) fn broken(breakage: Breakage) -> Self {
        Self::with(Some(breakage))
    }

    fn with(broken: Option<Breakage>) -> Self {
        let sessions = MemoryStore::new();
        let apart = matches!(broken, Some(Breakage::StreamsKept));
        let streams = if apart { MemoryStore::new() } else { sessions.clone() };
        Self::on(sessions, streams, broken)
    }

    fn on(sessions: MemoryStore, streams: MemoryStore, broken: Option<Breakage>) -> Self {
        Self(Arc::new(Shared {
            sessions,
            streams,
            broken,
            handles: AtomicU32::new(0),
            names: Mutex::default(),
            partly: Mutex::default(),
            seen: Gate::new(),
            attic: Mutex::default(),
            written: Mutex::default(),
            snapshots: Mutex::default(),
            usages: Mutex::default(),
            tags: Mutex::default(),
            looks: AtomicU32::new(0),
            tokens: Mutex::default(),
            write_queue: WriteQueue::new(),
        }))
    }

    fn handle(&self) -> Broken {
        let number = self.0.handles.fetch_add(1, Ordering::Relaxed);
        let (heads, snapshots, tokens) = (Arc::default(), Arc::default(), Arc::default());
        Broken { shared: Arc::clone(&self.0), number, heads, snapshots, tokens }
    }
}

#[async_trait]
impl StoreHarness for Harness {
    fn scope(&self) -> StoreScope {
        StoreScope::Process
    }

    async fn open(&self) -> Arc<dyn StateStore> {
        Arc::new(self.handle())
    }

    async fn contains_bytes(&self, bytes: &[u8]) -> Option<bool> {
        // The debug output contains all data.
        let text = String::from_utf8_lossy(bytes);
        Some(format!("{:?}", self.0).contains(&*text))
    }
}

#[async_trait]
impl StreamHarness for Harness {
    async fn open(&self) -> Arc<dyn StreamManager> {
        Arc::new(self.handle())
    }

    async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager> {
        let store = MemoryStore::with_options(MemoryOptions::new().stream_retention(chunks));
        Arc::new(Self::on(store.clone(), store, self.0.broken).handle())
    }
}

#[async_trait]
impl BackendHarness for Harness {
    async fn open(&self) -> Backend {
        Backend::of(self.handle())
    }
}
