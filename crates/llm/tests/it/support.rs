//! Shared test helpers: a scripted server, a request, and a sink that records its lines.

mod ask;
mod frames;
pub(crate) mod mock;
mod server;
mod sink;
mod talk;

pub(crate) use ask::{Ask, adapter, adapter_of, options, tool};
pub(crate) use frames::{event_frame, frame};
pub(crate) use server::{Act, Reply, Request, Server};
pub(crate) use sink::Recorder;
pub(crate) use talk::{Talk, found};

use helix_agents_core::error::ErrorRecord;
use helix_agents_core::llm::LlmResponse;
use helix_agents_core::step::StepResult;

/// Returns a streamed chunk whose first choice has this delta.
pub(crate) fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

/// Returns a streamed chunk with a piece of text.
pub(crate) fn text(text: &str) -> String {
    delta(&serde_json::json!({ "content": text }).to_string())
}

/// Returns the chunk with the stop reason.
pub(crate) fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

/// Returns a complete stream of these chunks.
pub(crate) fn stream<T: AsRef<str>>(chunks: impl IntoIterator<Item = T>) -> Vec<String> {
    let chunks = chunks.into_iter().map(|chunk| format!("data: {}\n\n", chunk.as_ref()));
    chunks.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

/// Returns the error of a response, and whether a retry cannot help.
#[track_caller]
pub(crate) fn failure(response: &LlmResponse) -> (&ErrorRecord, bool) {
    match &response.result {
        StepResult::Error { error, should_stop, .. } => (error, *should_stop),
        other => panic!("not a failure: {other:?}"),
    }
}

/// Returns the text of a response.
#[track_caller]
pub(crate) fn content(response: &LlmResponse) -> &str {
    match &response.result {
        StepResult::Text { content, .. } => content,
        other => panic!("not a text: {other:?}"),
    }
}

/// Returns one delta of a call.
pub(crate) fn piece(call: &str) -> String {
    delta(&format!(r#"{{"tool_calls":[{call}]}}"#))
}

/// Plays these chunks, and returns the response and the sink's lines.
pub(crate) async fn play<T: AsRef<str>>(chunks: &[T]) -> (LlmResponse, Vec<String>) {
    play_for(&Ask::default(), chunks).await
}

/// Like `play`, for a given call.
pub(crate) async fn play_for<T: AsRef<str>>(ask: &Ask, chunks: &[T]) -> (LlmResponse, Vec<String>) {
    let server = Server::start(vec![Reply::events(stream(chunks))]).await;
    let response = ask.answer(&adapter(&server)).await;
    (response, ask.sink.lines())
}
