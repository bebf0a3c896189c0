//! A model that says one thing after the other, and waits in the middle where it is told to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::server::{Reply, Server};

/// What it does for one request.
#[derive(Debug, Clone)]
pub(crate) enum Says {
    /// Words.
    Words(&'static str),
    /// The first of these words, and the others when it is let go on.
    Waits(&'static str, &'static str),
    /// These words, and a call of this tool when it is let go on.
    Asks(&'static str, &'static str),
    /// A call of a tool.
    Calls(&'static str, Value),
    /// An error that is not worth another try.
    Fails,
}

/// The model. Each request takes the next of what it says, and none is left for more.
#[derive(Debug)]
pub(crate) struct ModelServer {
    server: Server,
    gate: Arc<Semaphore>,
}

impl ModelServer {
    pub(crate) async fn start(all: impl IntoIterator<Item = Says>) -> Self {
        let all: VecDeque<_> = all.into_iter().collect();
        let (all, gate) = (Arc::new(Mutex::new(all)), Arc::new(Semaphore::new(0)));
        let pauses = Arc::clone(&gate);
        let server = Server::start(move |request| {
            if request.path().ends_with("/models") {
                let models = json!({ "object": "list", "data": [{ "id": "scripted" }] });
                return Reply::of(200, "content-type: application/json\r\n", &models.to_string());
            }
            let next = all.lock().unwrap().pop_front().unwrap_or(Says::Fails);
            reply(&next, &pauses)
        });
        Self { server: server.await, gate }
    }

    /// What makes `helix` ask this model.
    pub(crate) fn variables(&self) -> [(&'static str, String); 3] {
        [
            ("OPENAI_BASE_URL", format!("http://127.0.0.1:{}/v1", self.server.port)),
            ("OPENAI_API_KEY", "secret".to_owned()),
            ("HELIX_MODEL", "openai:scripted".to_owned()),
        ]
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.server.requests().iter().map(|request| request.json()).collect()
    }

    /// Returns once it was asked again.
    pub(crate) async fn asked(&self) {
        self.server.arrived().await;
    }

    /// Lets it go on where it waits.
    pub(crate) fn let_go(&self) {
        self.gate.add_permits(1);
    }
}

fn reply(says: &Says, gate: &Arc<Semaphore>) -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let words = |words: &str| event(&json!({ "content": words }), None);
    let pause = |first: &str, rest: String| {
        let first = format!("{head}{}", words(first));
        Reply::Pause(first.into_bytes(), Arc::clone(gate), rest.into_bytes())
    };
    match says {
        Says::Words(all) => {
            Reply::Send(format!("{head}{}{}", words(all), end("stop")).into_bytes())
        }
        Says::Waits(first, rest) => pause(first, words(rest) + &end("stop")),
        Says::Asks(first, tool) => pause(first, call(tool, &json!({}))),
        Says::Calls(tool, arguments) => {
            Reply::Send(format!("{head}{}", call(tool, arguments)).into_bytes())
        }
        Says::Fails => {
            let message = "no\u{1b}[2J such \u{1b}[32mthing";
            let error = json!({ "error": { "message": message, "code": "bad" } });
            Reply::of(400, "content-type: application/json\r\n", &error.to_string())
        }
    }
}

fn call(tool: &str, arguments: &Value) -> String {
    let function = json!({ "name": tool, "arguments": arguments.to_string() });
    let call = json!([{ "index": 0, "id": "call_1", "type": "function", "function": function }]);
    event(&json!({ "tool_calls": call }), None) + &end("tool_calls")
}

fn end(reason: &str) -> String {
    let usage = json!({ "prompt_tokens": 1200, "completion_tokens": 34, "total_tokens": 1234 });
    let usage = json!({ "choices": [], "usage": usage });
    format!("{}data: {usage}\n\ndata: [DONE]\n\n", event(&json!({}), Some(reason)))
}

fn event(delta: &Value, reason: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
    format!("data: {}\n\n", json!({ "choices": [choice] }))
}
