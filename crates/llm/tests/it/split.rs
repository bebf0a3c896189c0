//! Streams with every possible split, and long ones.

use crate::support::{Ask, Reply, Server, adapter, content, finish, stream, text};

const CALL: &str = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"ü\":\"🦀\\n\"}"}}]}}]}"#;

#[tokio::test]
async fn a_stream_may_be_cut_at_every_byte() {
    let whole = stream([&text("Zażółć\n"), CALL, &finish("tool_calls")]).concat();
    let whole = format!(": hi\r\n\r\n{whole}").into_bytes();
    let replies = (1..whole.len()).map(|at| Reply::events([&whole[..at], &whole[at..]]));
    let server = Server::start(replies.collect()).await;
    let adapter = adapter(&server);
    for at in 1..whole.len() {
        let ask = Ask::default();
        ask.answer(&adapter).await;
        let expected = [
            "text Zażółć\n",
            "start 0 add",
            "args 0 {\"ü\":\"🦀\\n\"}",
            "call c1 add {\"ü\":\"🦀\\n\"}",
        ];
        assert_eq!(ask.sink.lines(), expected, "cut at {at}");
    }
    assert_eq!(server.connections(), 1, "connections were not kept");
}

#[tokio::test]
async fn a_stream_may_come_byte_by_byte() {
    let whole = stream([&text("Hi."), CALL, &finish("tool_calls")]).concat().into_bytes();
    let server = Server::start(vec![Reply::events(whole.chunks(1))]).await;
    let ask = Ask::default();
    ask.answer(&adapter(&server)).await;
    assert_eq!(ask.sink.lines().len(), 4);
}

#[tokio::test]
async fn ten_thousand_chunks_are_a_reply() {
    let chunks = (0..10_000).map(|number| text(&format!("{number} "))).chain([finish("stop")]);
    let server = Server::start(vec![Reply::events(stream(chunks))]).await;
    let ask = Ask::default();
    let response = ask.answer(&adapter(&server)).await;
    let expected: String = (0..10_000).map(|number| format!("{number} ")).collect();
    assert_eq!(content(&response), expected);
    assert_eq!(ask.sink.joined("text "), expected);
    assert_eq!(ask.sink.lines().len(), 10_000);
}
