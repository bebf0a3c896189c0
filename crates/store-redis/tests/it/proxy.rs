//! A line to the server that loses replies: a command takes effect, and its caller is cut off.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::StreamExt as _;
use helix_agents_testkit::gate::within;
use helix_agents_testkit::ids::batch_id;
use helix_agents_testkit::servers;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use helix_agents_core::stream::{AttemptRef, Batch, Effect, StreamOp, Writer};

use super::support::{Corner, id, patient_streams, streams, text};

/// What marks a batch of which replies can be lost.
const MARK: &str = "reply to lose";

/// The line.
struct Proxy {
    corner: Corner,
    to_lose: Arc<AtomicU32>,
}

impl Proxy {
    async fn start() -> Self {
        let server = servers::redis();
        let place = server.strip_prefix("redis://").unwrap().trim_end_matches('/');
        let (user, address) = place.rsplit_once('@').unwrap_or(("", place));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let corner = Corner::at(&format!("redis://{user}@{own}"));
        let address = address.to_owned();
        let to_lose = Arc::new(AtomicU32::new(0));
        let lose = Arc::clone(&to_lose);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&address).await.unwrap();
                tokio::spawn(carry(client, server, Arc::clone(&lose)));
            }
        });
        Self { corner, to_lose }
    }

    /// Loses so many of the next replies that marked batches get.
    fn lose(&self, replies: u32) {
        self.to_lose.store(replies, Ordering::SeqCst);
    }

    fn all_lost(&self) -> bool {
        self.to_lose.load(Ordering::SeqCst) == 0
    }
}

/// Carries bytes both ways until one side ends, or a reply is to be lost.
async fn carry(mut client: TcpStream, mut server: TcpStream, to_lose: Arc<AtomicU32>) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut is_marked = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                let request = asked.get(..count).unwrap();
                is_marked = request.windows(MARK.len()).any(|it| it == MARK.as_bytes());
                if server.write_all(request).await.is_err() { return }
            }
            read = server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                let reply = answered.get(..count).unwrap();
                // A script that the server does not know yet did not run.
                let ran = !reply.starts_with(b"-NOSCRIPT");
                let is_lost = || {
                    let one_less = |it: u32| it.checked_sub(1);
                    to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
                };
                if is_marked && ran && is_lost() { return }
                if client.write_all(reply).await.is_err() { return }
            }
        }
    }
}

/// The driver makes another connection, on which the store sends the batch again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_reply_is_lost_is_written_once() {
    let proxy = Proxy::start().await;
    let streams = patient_streams(&proxy.corner.store().await);
    let session = id("s");
    streams.append(batch_id(), &session, None, vec![text(&session, "0")]).await.unwrap();
    for number in 1..20 {
        // The store sends it again; that may be cut off, too.
        proxy.lose(1 + number % 2);
        let begin =
            StreamOp::Begin { effect: Effect::Model { step: number }, origin: text(&session, "") };
        let chunks = vec![text(&session, MARK)];
        let chunks = StreamOp::Chunks { attempt: Some(AttemptRef::Begun(0)), chunks };
        let batch = Batch::new(batch_id(), Writer::without_run(&session), [begin, chunks]);
        let written = within(streams.write(&session, batch)).await.unwrap();
        assert!(proxy.all_lost());
        assert_eq!((written.last_seq, written.begun.len()), (u64::from(number) + 1, 1));
    }
    let info = streams.info(&session).await.unwrap();
    assert_eq!((info.last_seq, info.open.len()), (20, 19));
}

/// Chunks that others wrote after it do not hide whether it was written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_reply_is_lost_while_others_write_is_written_once() {
    const BATCHES: u64 = 20;
    let proxy = Proxy::start().await;
    let (here, there) = (proxy.corner.store().await, proxy.corner.store().await);
    let (streams, others) = (streams(&here), patient_streams(&there));
    let session = id("s");
    let mut unanswered = 0;
    for number in 0..BATCHES {
        let before = vec![text(&session, "before")];
        streams.append(batch_id(), &session, None, before).await.unwrap();
        let chunks = vec![text(&session, MARK)];
        let batch = Batch::new(
            batch_id(),
            Writer::without_run(&session),
            [StreamOp::Chunks { attempt: None, chunks }],
        );
        // The connection is replaced once, and that one is lost, too.
        proxy.lose(2);
        unanswered += u64::from(streams.write(&session, batch.clone()).await.is_err());
        for _ in 0..2 {
            let other = vec![text(&session, "other")];
            others.append(batch_id(), &session, None, other).await.unwrap();
        }
        let again = within(async {
            loop {
                if let Ok(written) = streams.write(&session, batch.clone()).await {
                    break written;
                }
            }
        });
        assert_eq!(again.await.last_seq, number * 4 + 2, "it stands before what came after it");
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
