//! Lost responses: a command takes effect, but its client gets no response.

use futures_util::StreamExt as _;
use helix_agents_conformance::ids::batch_id;
use helix_agents_test::within;
use helix_agents_testkit::proxy::{Protocol, Proxy};
use helix_agents_testkit::servers;

use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{AttemptRef, Batch, Effect, StreamOp, Writer};

use super::support::{Keyspace, id, retrying_streams, streams, text};

/// The content of a batch whose responses can be lost.
const MARK: &str = "reply to lose";

/// The proxy counts commands with that content. A script that the server does not know yet did not
/// run.
const MARKED: Protocol = Protocol {
    is_marked: |request| request.windows(MARK.len()).any(|part| part == MARK.as_bytes()),
    is_carried_out: |reply| !reply.starts_with(b"-NOSCRIPT"),
};

async fn start() -> (Proxy, Keyspace) {
    let proxy = Proxy::start(&servers::redis(), MARKED).await;
    let keyspace = Keyspace::at(proxy.url());
    (proxy, keyspace)
}

/// The driver opens another connection, on which the store sends the batch again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_reply_is_lost_is_written_once() {
    let (proxy, keyspace) = start().await;
    let streams = retrying_streams(&keyspace.store().await);
    let session = id("s");
    streams.append_chunks(batch_id(), &session, None, vec![text(&session, "0")]).await.unwrap();
    for number in 1..20 {
        // The store sends the batch again. That response may be lost, too.
        proxy.lose(1 + number % 2);
        let begin = StreamOp::Begin {
            effect: Effect::Model { step: number },
            origin: text(&session, "").into(),
        };
        let chunks = vec![text(&session, MARK).into()];
        let chunks = StreamOp::Chunks { attempt: Some(AttemptRef::Started(0)), chunks };
        let batch = Batch::new(batch_id(), Writer::without_run(&session), [begin, chunks]);
        let written = within(streams.write(&session, batch)).await.unwrap();
        assert!(proxy.all_lost());
        assert_eq!((written.last_seq, written.started.len()), (u64::from(number) + 1, 1));
    }
    let info = streams.info(&session).await.unwrap();
    assert_eq!((info.last_seq, info.open.len()), (20, 19));
}

/// Later chunks of other writers do not obscure whether this batch was written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_reply_is_lost_while_others_write_is_written_once() {
    const BATCHES: u64 = 20;
    let (proxy, keyspace) = start().await;
    let (here, there) = (keyspace.store().await, keyspace.store().await);
    let (streams, others) = (streams(&here), retrying_streams(&there));
    let session = id("s");
    let mut unanswered = 0;
    for number in 0..BATCHES {
        let before = vec![text(&session, "before")];
        streams.append_chunks(batch_id(), &session, None, before).await.unwrap();
        let chunks = vec![text(&session, MARK).into()];
        let batch = Batch::new(
            batch_id(),
            Writer::without_run(&session),
            [StreamOp::Chunks { attempt: None, chunks }],
        );
        // The store replaces a lost connection once. The replacement is lost, too.
        proxy.lose(2);
        unanswered += u64::from(streams.write(&session, batch.clone()).await.is_err());
        for _ in 0..2 {
            let other = vec![text(&session, "other")];
            others.append_chunks(batch_id(), &session, None, other).await.unwrap();
        }
        let again = within(async {
            loop {
                if let Ok(written) = streams.write(&session, batch.clone()).await {
                    break written;
                }
            }
        });
        assert_eq!(again.await.last_seq, number * 4 + 2, "the batch precedes later ones");
    }
    assert!(unanswered > 0, "every batch was answered");
    let last = streams.info(&session).await.unwrap().last_seq;
    assert_eq!(last, BATCHES * 4);
    let mut reader = streams.read(&session, 1).await.unwrap();
    let mut marked = 0;
    for _ in 0..last {
        let stored = within(reader.next()).await.unwrap().unwrap();
        marked += u64::from(stored.chunk.kind == text(&session, MARK).kind);
    }
    assert_eq!(marked, BATCHES);
}
