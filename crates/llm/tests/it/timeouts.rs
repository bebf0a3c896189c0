//! Servers that stop responding.

use std::time::Duration;

use helix_agents_llm::{ModelServer, Timeouts};

use crate::support::{Act, Ask, Reply, Server, content, failure, finish, options, text};

const SHORT: Duration = Duration::from_millis(40);
const LONG: Duration = Duration::from_secs(600);

async fn ask(reply: Reply, timeouts: Timeouts) -> (helix_agents_core::llm::LlmResponse, Server) {
    let server = Server::start(vec![reply]).await;
    let adapter = ModelServer::new(options(&server).with_timeouts(timeouts)).unwrap();
    (Ask::default().answer(&adapter).await, server)
}

fn event(chunk: &str) -> String {
    format!("data: {chunk}\n\n")
}

#[tokio::test]
async fn a_silent_server_times_out_and_the_connection_closes() {
    let timeouts = Timeouts::default().with_first_byte(SHORT).with_read(LONG);
    let (response, server) = ask(Reply::default().then(Act::AwaitClose), timeouts).await;
    let (error, should_stop) = failure(&response);
    assert_eq!((error.code.as_ref(), should_stop), ("provider_timeout", true));
    server.closed().await;
}

#[tokio::test]
async fn a_head_without_a_body_times_out() {
    let timeouts = Timeouts::default().with_first_byte(SHORT).with_read(LONG);
    let reply = Reply::head("text/event-stream").then(Act::AwaitClose);
    let (response, server) = ask(reply, timeouts).await;
    assert_eq!(failure(&response).0.code, "provider_timeout");
    server.closed().await;
}

#[tokio::test]
async fn a_stream_that_stalls_times_out() {
    let timeouts = Timeouts::default().with_first_byte(LONG).with_read(SHORT);
    let reply = Reply::head("text/event-stream").piece(event(&text("a"))).then(Act::AwaitClose);
    let (response, server) = ask(reply, timeouts).await;
    let (error, should_stop) = failure(&response);
    assert_eq!((error.code.as_ref(), should_stop), ("provider_timeout", false));
    server.closed().await;
}

#[tokio::test]
async fn a_finished_reply_is_not_lost_to_a_server_that_stalls_afterwards() {
    let timeouts = Timeouts::default().with_read(SHORT);
    let reply = Reply::head("text/event-stream")
        .piece(event(&text("a")))
        .piece(event(&finish("stop")))
        .then(Act::AwaitClose);
    let (response, server) = ask(reply, timeouts).await;
    assert_eq!(content(&response), "a");
    server.closed().await;
}

#[tokio::test]
async fn a_server_that_keeps_the_stream_open_after_its_end_costs_little() {
    let reply = Reply::head("text/event-stream")
        .piece(event(&text("a")))
        .piece(event(&finish("stop")))
        .piece("data: [DONE]\n\n")
        .then(Act::AwaitClose);
    let (response, server) = ask(reply, Timeouts::default()).await;
    assert_eq!(content(&response), "a");
    server.closed().await;
}

#[tokio::test]
async fn the_wait_for_token_counts_is_shorter_than_for_the_reply() {
    let end = [event(&text("a")), event(&finish("stop"))].concat();
    let reply = Reply::head("text/event-stream").piece(end).then(Act::AwaitClose);
    let server = Server::start(vec![reply]).await;
    let timeouts = Timeouts::default().with_first_byte(LONG).with_read(LONG);
    let adapter = ModelServer::new(options(&server).with_timeouts(timeouts)).unwrap();
    let ask = Ask::default();
    let all_has_come = async {
        ask.sink.news.notified().await;
        // From here on, time jumps to the next timer.
        tokio::time::pause();
        tokio::time::Instant::now()
    };
    let (response, came) = tokio::join!(ask.answer(&adapter), all_has_come);
    assert_eq!(content(&response), "a");
    assert!(came.elapsed() < Duration::from_secs(10), "{:?}", came.elapsed());
}
