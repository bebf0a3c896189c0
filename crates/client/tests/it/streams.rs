//! Event streams across connections.

use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_client::{StartRequest, StreamEnd};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::stream::ChunkKind;
use helix_agents_server::Limits;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};

use crate::support::{Proxy, TEXT, World, builder, fast, fixed, rest, text_of};

fn start() -> StartRequest {
    StartRequest::new("clerk", "Go!").session("talk")
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_loses_and_repeats_nothing() {
    let steps = (0..20).map(|_| Reply::more_text(TEXT)).chain([Reply::text("The end.")]);
    let world = World::new(ScriptedLlm::new(steps)).await;
    world.client().start(start()).await.unwrap();
    let whole = rest(&mut world.client().follow(&"talk".into())).await;
    assert!(whole.len() > 60, "{} chunks", whole.len());
    // In the head, in the first comment, within an event, at its end, and further on.
    let cuts = [10, 330, 400, 700, 701, 1500, 2000, 3000];
    let proxy = Proxy::to(world.address).await;
    proxy.cut("GET /sse", cuts);
    let mut chunks = builder(proxy.address).build().unwrap().follow(&"talk".into());
    assert_eq!(rest(&mut chunks).await, whole);
    assert_eq!((proxy.cuts(), chunks.end()), (cuts.len(), Some(StreamEnd::Ended)));
}

#[tokio::test]
async fn a_live_stream_that_is_cut_continues_with_the_next_chunk() {
    let gate = Gate::new();
    let model = ScriptedLlm::new([Reply::more_text("One, "), Reply::text("two.").at_gate(&gate)]);
    let world = World::new(model).await;
    let proxy = Proxy::to(world.address).await;
    let client = builder(proxy.address).build().unwrap();
    client.start(start()).await.unwrap();
    proxy.cut("GET /sse", [1200]);
    let mut chunks = client.follow(&"talk".into());
    let mut seen = Vec::new();
    while !text_of(&seen).contains("One") {
        seen.push(within(chunks.next()).await.unwrap().unwrap());
    }
    gate.reached().await;
    gate.open();
    seen.extend(rest(&mut chunks).await);
    assert_eq!(seen, rest(&mut world.client().follow(&"talk".into())).await);
    assert_eq!((text_of(&seen), proxy.cuts()), ("One, two.".to_owned(), 1));
}

#[tokio::test]
async fn a_stream_continues_at_another_server_when_its_own_one_stops() {
    let (gate, store) = (Gate::new(), MemoryStore::new());
    let model = ScriptedLlm::new([Reply::text(TEXT).at_gate(&gate)]).chunk_size(4);
    let mut world = World::on(&store, model, Limits::default()).await;
    let proxy = Proxy::to(world.address).await;
    let client = builder(proxy.address).build().unwrap();
    let started = client.start(start()).await.unwrap();
    let handle = client.handle(&started.session, &started.run);
    let mut chunks = client.follow(&started.session);
    let first = within(chunks.next()).await.unwrap().unwrap();
    assert!(matches!(first.chunk.kind, ChunkKind::RunStarted { .. }));
    gate.reached().await;
    world.stopped().await;
    // Its sweep takes the run over.
    let other =
        World::on(&store, ScriptedLlm::new([Reply::text(TEXT)]).chunk_size(4), Limits::default())
            .await;
    proxy.redirect(other.address);
    let mut seen = vec![first];
    seen.extend(rest(&mut chunks).await);
    assert_eq!((text_of(&seen), chunks.end()), (TEXT.to_owned(), Some(StreamEnd::Ended)));
    let seqs: Vec<_> = seen.iter().map(|chunk| chunk.seq).collect();
    assert!(seqs.is_sorted_by(|before, after| before < after), "{seqs:?}");
    // The handle belongs to the run that has taken over.
    let result = within(handle.result()).await.unwrap();
    assert_eq!(result.output.unwrap().to_value(), TEXT);
}

#[tokio::test]
async fn a_reader_that_was_slow_for_too_long_still_gets_everything() {
    let mut limits = Limits::default();
    limits.stall_timeout = Duration::from_millis(50);
    let text = TEXT.repeat(4000);
    let model = ScriptedLlm::new([Reply::text(text.clone())]).chunk_size(40);
    let world = World::with(model, limits).await;
    let proxy = Proxy::to(world.address).await;
    proxy.cut("GET /sse", [300_000]);
    let client = builder(proxy.address).build().unwrap();
    client.start(start()).await.unwrap();
    let mut chunks = client.follow(&"talk".into());
    let first = within(chunks.next()).await.unwrap().unwrap();
    // The server finishes the run although its client does not read.
    let mut other = world.client().follow(&"talk".into());
    let whole = rest(&mut other).await;
    let mut seen = vec![first];
    seen.extend(rest(&mut chunks).await);
    assert!(seen == whole, "{} of {} chunks", seen.len(), whole.len());
    assert_eq!(text_of(&seen).len(), text.len());
}

#[tokio::test]
async fn a_stream_that_does_not_exist_is_not_asked_for_again() {
    let world = World::new(ScriptedLlm::new([])).await;
    let mut chunks = world.client().follow(&"nothing".into());
    let error = within(chunks.next()).await.unwrap().unwrap_err();
    assert_eq!(
        (error.status(), error.is(ErrorCode::SessionNotFound)),
        (Some(404), true),
        "{error}"
    );
    assert!(within(chunks.next()).await.is_none() && chunks.end().is_none());
}

#[tokio::test]
async fn a_server_that_does_not_come_back_is_given_up() {
    let world = World::new(ScriptedLlm::new([])).await;
    let proxy = Proxy::to(world.address).await;
    // No server listens on the port of a listener that was dropped.
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    proxy.redirect(gone);
    let mut limits = fast();
    limits.reconnect = Duration::from_millis(200);
    let client = builder(proxy.address).limits(limits).build().unwrap();
    let error = within(client.follow(&"talk".into()).next()).await.unwrap().unwrap_err();
    assert!(error.is(ErrorCode::ServerUnreachable) && error.is_retryable(), "{error}");
}

#[tokio::test]
async fn an_event_beyond_the_limit_and_one_of_another_form_end_the_stream() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    for event in [format!("data: \"{}", "x".repeat(5000)), "data: {}\n\n".to_owned()] {
        let (address, mut heads) = fixed([format!("{head}{event}")]).await;
        let mut limits = fast();
        limits.event_bytes = 1000;
        let client = builder(address).limits(limits).build().unwrap();
        let error = within(client.follow(&"talk".into()).next()).await.unwrap().unwrap_err();
        assert!(error.is(ErrorCode::ServerProtocol), "{error}");
        assert!(heads.recv().await.unwrap().starts_with("GET /sse?sessionId=talk&from=1 "));
    }
}
