//! Conformance tests for a backend that keeps both sessions and their streams.
//!
//! A store crate that implements [`StateStore`] and [`StreamManager`] writes a [`BackendHarness`] and
//! expands [`backend_suite!`](crate::backend_suite!) in `mod backend` of its `tests/it/main.rs`.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::maybe_done;

use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Purge, SessionStatus, StateStore};
use helix_agents_core::stream::{StreamInfo, StreamManager};

use crate::store_suite::support::{Writer, child, first, id};
use crate::stream_suite::support::{replay, texts, write};

/// A backend under test.
#[async_trait]
pub trait BackendHarness: Send + Sync {
    /// Opens a handle with both contracts. Every handle of one harness sees the same data. No two harnesses
    /// share data.
    async fn open(&self) -> Backend;
}

/// A handle of a backend.
#[derive(Debug, Clone)]
pub struct Backend {
    /// The session store of the handle.
    pub store: Arc<dyn StateStore>,
    /// The stream manager of the handle.
    pub streams: Arc<dyn StreamManager>,
}

impl Backend {
    /// Wraps a handle that implements both contracts.
    pub fn of(handle: impl StateStore + StreamManager + Clone) -> Self {
        Self { store: Arc::new(handle.clone()), streams: Arc::new(handle) }
    }

    /// Creates a session whose stream has one chunk.
    async fn create(&self, session: &str) -> Writer {
        let writer = Writer::create(&self.store, session).await;
        write(&self.streams, &writer.session, None, &["said"]).await;
        writer
    }

    /// Creates a child session, which writes one chunk to the root's stream.
    async fn create_below(&self, session: &str, root: &SessionId) {
        let new = child(root, root);
        Writer::create_as(&self.store, new, first(&id(session), "first")).await;
        write(&self.streams, root, None, &["said"]).await;
    }

    async fn info(&self, session: &str) -> StreamInfo {
        self.streams.info(&id(session)).await.unwrap()
    }
}

/// Expands to one `#[test]` per scenario. The argument is the path of an async function that creates a fresh
/// [`BackendHarness`].
///
/// # Examples
///
/// ```
/// # use helix_agents_store_memory::MemoryStore;
/// use helix_agents_conformance::backend_suite::{Backend, BackendHarness};
///
/// struct Harness(MemoryStore);
///
/// #[async_trait::async_trait]
/// impl BackendHarness for Harness {
///     async fn open(&self) -> Backend {
///         Backend::of(self.0.clone())
///     }
/// }
///
/// async fn harness() -> Harness { Harness(MemoryStore::new()) }
///
/// helix_agents_conformance::backend_suite!(harness);
/// ```
#[macro_export]
macro_rules! backend_suite {
    ($harness:path) => {
        $crate::__scenarios! { backend_suite, $harness;
            a_deleted_session_leaves_no_stream,
            a_session_that_is_created_anew_has_a_stream_of_its_own,
            a_purged_tree_leaves_no_stream,
            a_purge_leaves_the_streams_of_others,
            deleting_a_session_leaves_the_streams_of_others,
            writes_of_one_queue_are_executed_in_order,
        }
    };
}

/// Deleting a session through any handle deletes its stream, including chunks that other handles wrote.
pub async fn a_deleted_session_leaves_no_stream(harness: &impl BackendHarness) {
    let (one, other) = (harness.open().await, harness.open().await);
    let session = one.create("s").await.session;
    write(&other.streams, &session, None, &["and more"]).await;
    assert!(other.store.delete(&session).await.unwrap());
    for backend in [&one, &other, &harness.open().await] {
        assert_eq!(backend.info("s").await, StreamInfo::default());
    }
}

/// A session that is created with the id of a deleted session has a new stream. Its numbers start at 1, and it contains
/// no chunk of the deleted stream.
pub async fn a_session_that_is_created_anew_has_a_stream_of_its_own(harness: &impl BackendHarness) {
    let (one, other) = (harness.open().await, harness.open().await);
    let session = one.create("s").await.session;
    write(&one.streams, &session, None, &["before", "before"]).await;
    assert!(one.store.delete(&session).await.unwrap());
    for backend in [&other, &one] {
        let writer = Writer::create(&backend.store, "s").await;
        assert_eq!(write(&backend.streams, &writer.session, None, &["anew"]).await, 1);
        let chunks = replay(&backend.streams, &session, 1).await;
        assert_eq!(texts(&chunks), ["anew"]);
        assert!(backend.store.delete(&session).await.unwrap());
    }
}

/// Purging a tree deletes the stream of its root, which contains the chunks of all sessions of the tree.
pub async fn a_purged_tree_leaves_no_stream(harness: &impl BackendHarness) {
    let (one, other) = (harness.open().await, harness.open().await);
    let root = one.create("s").await.session;
    one.create_below("child", &root).await;
    write(&other.streams, &root, None, &["and more"]).await;
    let purge = Purge { older_than: Duration::ZERO, statuses: SessionStatus::ALL.to_vec() };
    assert_eq!(other.store.purge(&purge).await.unwrap(), 2);
    for backend in [&one, &other, &harness.open().await] {
        assert_eq!(backend.info("s").await.first_seq, 0);
    }
}

/// A purge does not delete the streams of sessions that it keeps.
pub async fn a_purge_leaves_the_streams_of_others(harness: &impl BackendHarness) {
    let backend = harness.open().await;
    let mut ended = backend.create("ended").await;
    backend.create("stays").await;
    let mut last = ended.next("ended");
    last.summary = first(&ended.session, "ended").summary;
    last.summary.as_mut().unwrap().status = SessionStatus::Completed;
    ended.take(last).await;
    let purge = Purge { older_than: Duration::ZERO, statuses: vec![SessionStatus::Completed] };
    assert_eq!(backend.store.purge(&purge).await.unwrap(), 1);
    assert_eq!(backend.info("ended").await.first_seq, 0);
    let info = backend.info("stays").await;
    assert_eq!((info.first_seq, info.last_seq), (1, 1));
}

/// Deleting a child keeps the stream of its root, to which the child wrote, and the streams of sessions with
/// similar ids.
pub async fn deleting_a_session_leaves_the_streams_of_others(harness: &impl BackendHarness) {
    let backend = harness.open().await;
    let root = backend.create("root").await.session;
    backend.create("CHILD").await;
    backend.create_below("child", &root).await;
    assert!(backend.store.delete(&id("child")).await.unwrap());
    for (session, last_seq) in [("root", 2), ("CHILD", 1)] {
        let info = backend.info(session).await;
        assert_eq!((info.first_seq, info.last_seq), (1, last_seq), "{session}");
    }
}

/// Writes of one [`WriteQueue`](helix_agents_core::store::WriteQueue) are executed in the order in which their futures
/// are first polled, although only the last one is polled further. Backends without a queue promise no order.
pub async fn writes_of_one_queue_are_executed_in_order(harness: &impl BackendHarness) {
    let backend = harness.open().await;
    let queue = backend.store.write_queue();
    if queue.is_none() || queue != backend.streams.write_queue() {
        return;
    }
    let mut writer = backend.create("s").await;
    let session = writer.session.clone();
    for round in 1..=20 {
        let mut batch = pin!(maybe_done(write(&backend.streams, &session, None, &["more"])));
        let _ = batch.as_mut().now_or_never();
        let append = writer.next(&format!("after batch {round}"));
        writer.take(append).await;
        assert_eq!(backend.info("s").await.last_seq, 1 + 2 * round - 1, "the batch came later");
        batch.await;

        let append = writer.next(&format!("before batch {round}"));
        let mut append = pin!(maybe_done(writer.take(append)));
        let _ = append.as_mut().now_or_never();
        write(&backend.streams, &session, None, &["more"]).await;
        let head = backend.store.head(&session).await.unwrap().unwrap();
        assert_eq!(head.position.version, 1 + 2 * round, "the append came later");
        append.await;
    }
}
