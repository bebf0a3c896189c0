//! Batches and appends are executed in the order in which they were submitted.

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::{Batch, StreamManager, StreamOp, Writer};
use helix_agents_test::within;

use super::support::{Folder, append, create, id, streams, text};

#[tokio::test]
async fn an_append_is_not_executed_before_an_earlier_batch() {
    let folder = Folder::new();
    let store = folder.open().await;
    let streams = streams(&store);
    assert!(StateStore::write_queue(&store).is_some());
    assert_eq!(StateStore::write_queue(&store), StreamManager::write_queue(&store));
    let other = Folder::new().open().await;
    assert_ne!(StateStore::write_queue(&store), StateStore::write_queue(&other));

    let session = id("s");
    let position = create(&store, &session).await;
    // While the first batches are written, the others and the append are queued.
    let mut writes = FuturesUnordered::new();
    for _ in 0..20 {
        let chunks = vec![text(&session, "x").into()];
        let op = StreamOp::Chunks { attempt: None, chunks };
        let batch = Batch::new(batch_id(), Writer::without_run(&session), [op]);
        writes.push(streams.write(&session, batch));
    }
    let written = writes.next().now_or_never().flatten();
    within(store.append(append(&session, &position, "a"))).await.unwrap();
    // The batches were written, although they were not polled again.
    assert_eq!(streams.info(&session).await.unwrap().last_seq, 20);
    drop(written);
    let answered = within(writes.map(Result::unwrap).collect::<Vec<_>>()).await;
    assert!(answered.len() >= 19, "{answered:?}");
}
