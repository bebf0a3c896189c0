//! A cancelled call closes its connection immediately, in every state.

use std::time::{Duration, Instant};

use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::llm::LlmResponse;

use crate::support::{Act, Ask, Reply, Server, adapter, text};

#[track_caller]
fn assert_cancelled(result: Result<LlmResponse>) {
    assert_eq!(result.unwrap_err().code(), ErrorCode::Cancelled);
}

#[tokio::test]
async fn while_the_answer_is_awaited() {
    let server = Server::start(vec![Reply::default().then(Act::AwaitClose)]).await;
    let (ask, adapter) = (Ask::default(), adapter(&server));
    let cancelling = async {
        server.arrived().await;
        ask.cancel.cancel();
    };
    let (result, ()) = tokio::join!(ask.of(&adapter), cancelling);
    assert_cancelled(result);
    server.closed().await;
}

#[tokio::test]
async fn in_the_middle_of_a_stream() {
    let begin = Reply::head("text/event-stream").piece(format!("data: {}\n\n", text("Hel")));
    let server = Server::start(vec![begin.then(Act::AwaitClose)]).await;
    let (ask, adapter) = (Ask::default(), adapter(&server));
    let cancelling = async {
        ask.sink.news.notified().await;
        ask.cancel.cancel();
    };
    let (result, ()) = tokio::join!(ask.of(&adapter), cancelling);
    assert_cancelled(result);
    server.closed().await;
    assert_eq!(ask.sink.lines(), ["text Hel"]);
}

#[tokio::test]
async fn while_an_error_body_comes_in() {
    let head = "HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\nhalf";
    let reply = Reply(vec![Act::Send(head.as_bytes().to_vec()), Act::AwaitClose]);
    let server = Server::start(vec![reply]).await;
    let (ask, adapter) = (Ask { max_retries: 3, ..Ask::default() }, adapter(&server));
    let cancelling = async {
        server.arrived().await;
        // Lets the client read the head of the response.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        ask.cancel.cancel();
    };
    let (result, ()) = tokio::join!(ask.of(&adapter), cancelling);
    assert_cancelled(result);
    server.closed().await;
}

#[tokio::test]
async fn while_it_waits_for_a_retry() {
    let server = Server::start(vec![Reply::status(503, "retry-after: 30\r\n", "")]).await;
    let (ask, adapter) = (Ask { max_retries: 3, ..Ask::default() }, adapter(&server));
    let started = Instant::now();
    let cancelling = async {
        server.arrived().await;
        // Lets the client read the response and start to wait.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        ask.cancel.cancel();
    };
    let (result, ()) = tokio::join!(ask.of(&adapter), cancelling);
    assert_cancelled(result);
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn before_it_began() {
    let server = Server::start(vec![]).await;
    let ask = Ask::default();
    ask.cancel.cancel();
    assert_cancelled(ask.of(&adapter(&server)).await);
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn dropping_the_call_closes_the_connection_too() {
    let server = Server::start(vec![Reply::default().then(Act::AwaitClose)]).await;
    let (ask, adapter) = (Ask::default(), adapter(&server));
    tokio::select! {
        result = ask.of(&adapter) => panic!("{result:?}"),
        () = server.arrived() => {}
    }
    server.closed().await;
}
