//! One stream that many handles write to concurrently, as fast as they can.

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_test::within;

use super::support::{Database, id, streams, text};

const WRITERS: u64 = 16;
const BATCHES: u64 = 25;

/// The store does not lock the stream, so each batch is tried until it succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_of_one_stream_do_not_starve() {
    let database = Database::new();
    let session = id("s");
    let mut writing = Vec::new();
    for _ in 0..WRITERS {
        let (streams, session) = (streams(&database.open().await), session.clone());
        writing.push(tokio::spawn(async move {
            for _ in 0..BATCHES {
                let chunks = vec![text(&session, "x")];
                streams.append_chunks(batch_id(), &session, None, chunks).await.unwrap();
            }
        }));
    }
    for writer in writing {
        within(writer).await.unwrap();
    }
    let info = streams(&database.open().await).info(&session).await.unwrap();
    assert_eq!(info.last_seq, WRITERS * BATCHES);
}
