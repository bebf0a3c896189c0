//! The lifetime of stream entries in the table.

use std::sync::PoisonError;

use futures_util::{FutureExt as _, StreamExt as _};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{BatchId, SessionId};
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{Chunk, ChunkKind, StreamManager};

use crate::MemoryStore;

fn entries(store: &MemoryStore) -> usize {
    store.inner.streams.table.read().unwrap_or_else(PoisonError::into_inner).len()
}

/// Writes one chunk. None of the calls in this function waits.
fn write(store: &MemoryStore, session: &SessionId, batch: u128) {
    let chunk = Chunk {
        agent: "a".into(),
        session: session.clone(),
        run: "r".into(),
        step: 1,
        at: Timestamp(0),
        kind: ChunkKind::RunStarted { turn: 1 },
    };
    let streams: &dyn StreamManager = store;
    let written = streams.append_chunks(BatchId(batch), session, None, vec![chunk]);
    written.now_or_never().unwrap().unwrap();
}

#[test]
fn a_reader_without_a_stream_leaves_no_entry() {
    let (store, session) = (MemoryStore::new(), SessionId::from("s"));
    let read = || StreamManager::read(&store, &session, 1).now_or_never().unwrap().unwrap();
    let (mut one, other) = (read(), read());
    assert!(one.next().now_or_never().is_none());
    StreamManager::info(&store, &session).now_or_never().unwrap().unwrap();
    assert_eq!(entries(&store), 1);
    drop(one);
    assert_eq!(entries(&store), 1);
    drop(other);
    assert_eq!(entries(&store), 0);
}

#[test]
fn an_entry_is_kept_while_it_has_a_stream_or_a_reader() {
    let (store, session) = (MemoryStore::new(), SessionId::from("s"));
    let forget = || {
        let info = store.info(&session).now_or_never().unwrap().unwrap();
        assert!(store.forget(&session, &info).now_or_never().unwrap().unwrap());
    };
    let reader = StreamManager::read(&store, &session, 1).now_or_never().unwrap().unwrap();
    write(&store, &session, 1);
    drop(reader);
    assert_eq!(entries(&store), 1, "the stream is kept");
    let mut reader = StreamManager::read(&store, &session, 1).now_or_never().unwrap().unwrap();
    forget();
    assert_eq!(entries(&store), 1, "the reader waits for the next stream");
    write(&store, &session, 2);
    assert_eq!(reader.next().now_or_never().unwrap().unwrap().unwrap().seq, 1);
    drop(reader);
    forget();
    assert_eq!(entries(&store), 0);
}
