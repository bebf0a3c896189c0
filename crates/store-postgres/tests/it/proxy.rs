//! Lost responses: a request takes effect, but its client gets no response.

use futures_util::StreamExt as _;
use helix_agents_conformance::ids::batch_id;
use helix_agents_test::within;
use helix_agents_testkit::proxy::{Protocol, Proxy};
use helix_agents_testkit::servers;

use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Position, SessionStatus, StateStore as _,
};
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_core::stream::{AttemptRef, Batch, Effect, StreamOp, Writer};

use super::support::{
    Database, add, append, create, id, ids, new_session, retrying, retrying_streams, streams,
    summary, text,
};

/// The proxy counts bind messages. Messages that only prepare a statement do not count.
const BOUND: Protocol =
    Protocol { is_marked: |request| request.first() == Some(&b'B'), is_carried_out: |_| true };

async fn start() -> (Proxy, Database) {
    let proxy = Proxy::start(&servers::postgres(), BOUND).await;
    let database = Database::at(proxy.url());
    (proxy, database)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_reply_is_lost_is_answered_and_written_once() {
    let (proxy, database) = start().await;
    let store = retrying(&database.open().await);
    let mut position = create(&store, &id("s")).await;
    for number in 0..20 {
        proxy.lose(1 + number % 3);
        let name = format!("a{number}");
        let outcome = store.append(append(&id("s"), &position, &name)).await.unwrap();
        assert!(matches!(outcome, AppendOutcome::Appended { .. }), "{outcome:?}");
        assert!(proxy.all_lost());
        position = Position { version: position.version + 1, append: name.as_str().into() };
    }
    assert_eq!(ids(&store, &id("s")).await.len(), 21);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_or_fork_whose_reply_is_lost_is_answered_as_the_first_time() {
    let (proxy, database) = start().await;
    let store = retrying(&database.open().await);
    let with_summary =
        |append: Append| Append { summary: Some(summary(SessionStatus::Active, None)), ..append };
    proxy.lose(1);
    let first = with_summary(append(&id("s"), &Position::start(), "first"));
    let outcome = store.create_session(new_session(&id("s"), None), first).await.unwrap();
    assert!(matches!(outcome, CreateOutcome::Created { .. }), "{outcome:?}");
    proxy.lose(1);
    let position = Position { version: 1, append: "first".into() };
    let first = with_summary(append(&id("f"), &position, "fork"));
    let outcome = store.fork(&id("s"), new_session(&id("f"), None), first).await.unwrap();
    assert!(matches!(outcome, ForkOutcome::Created { .. }), "{outcome:?}");
    assert!(proxy.all_lost());
    assert_eq!(ids(&store, &id("f")).await, ["first", "fork"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_reply_is_lost_is_written_once() {
    let (proxy, database) = start().await;
    let streams = retrying_streams(&database.open().await);
    let session = id("s");
    streams.append_chunks(batch_id(), &session, None, vec![text(&session, "0")]).await.unwrap();
    for number in 1..20 {
        proxy.lose(1);
        let begin = StreamOp::Begin {
            effect: Effect::Model { step: number },
            origin: text(&session, "").into(),
        };
        let chunks = StreamOp::Chunks {
            attempt: Some(AttemptRef::Started(0)),
            chunks: vec![text(&session, &number.to_string()).into()],
        };
        let written = streams
            .write(&session, Batch::new(batch_id(), Writer::without_run(&session), [begin, chunks]))
            .await
            .unwrap();
        assert!(proxy.all_lost());
        assert_eq!((written.last_seq, written.started.len()), (u64::from(number) + 1, 1));
    }
    let info = streams.info(&session).await.unwrap();
    assert_eq!((info.last_seq, info.open.len()), (20, 19));
}

/// Later batches of other writers do not obscure whether this batch was written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_reply_is_lost_while_others_write_is_written_once() {
    const BATCHES: u64 = 20;
    let (proxy, database) = start().await;
    let store = database.open().await;
    let (streams, others) = (streams(&store), retrying_streams(&database.open().await));
    let session = id("s");
    let mut reader = others.read(&session, 1).await.unwrap();
    let mut unanswered = 0;
    for number in 0..BATCHES {
        // After this append, the writer has the current state of the stream.
        let before = vec![text(&session, "before")];
        let before = streams.append_chunks(batch_id(), &session, None, before).await.unwrap();
        // After the notification was sent, only the batch has a response that can be lost.
        while within(reader.next()).await.unwrap().unwrap().seq < before {}
        let chunks = vec![text(&session, &number.to_string()).into()];
        let batch = Batch::new(
            batch_id(),
            Writer::without_run(&session),
            [StreamOp::Chunks { attempt: None, chunks }],
        );
        // The store replaces a lost connection once. The replacement is lost, too.
        proxy.lose(2);
        let first = streams.write(&session, batch.clone()).await;
        unanswered += u64::from(first.is_err());
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
    assert_eq!(streams.info(&session).await.unwrap().last_seq, BATCHES * 4);
    // The connections still work afterwards.
    let mut position = create(&store, &id("t")).await;
    add(&store, &id("t"), &mut position, "a").await;
}
