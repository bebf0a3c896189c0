//! Batches and appends are executed in the order in which they were submitted.

use futures_util::FutureExt as _;
use futures_util::future::{join_all, maybe_done};

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
    let writer = Writer::without_run(&session);
    // While the first batches are written, the others and the append are queued.
    let batches = (0..20).map(|_| {
        let chunks = vec![text(&session, "x").into()];
        let op = StreamOp::Chunks { attempt: None, chunks };
        maybe_done(streams.write(&session, Batch::new(batch_id(), writer.clone(), [op])))
    });
    let mut writes: Vec<_> = batches.map(Box::pin).collect();
    for write in &mut writes {
        write.now_or_never();
    }
    within(store.append(append(&session, &position, "a"))).await.unwrap();
    // The batches were written, although they were not polled again.
    assert_eq!(streams.info(&session).await.unwrap().last_seq, 20);
    within(join_all(&mut writes)).await;
    for mut write in writes {
        write.as_mut().take_output().unwrap().unwrap();
    }
}
