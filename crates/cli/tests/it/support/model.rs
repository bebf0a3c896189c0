//! A model server with scripted replies, some of which pause in the middle.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::server::{Reply, Server};

/// A reply to one request.
#[derive(Debug, Clone)]
pub(crate) enum Scripted {
    /// A reply with text.
    Words(&'static str),
    /// The first text, and the second one after [`ModelServer::let_go`].
    Waits(&'static str, &'static str),
    /// Text, and a call of this tool after [`ModelServer::let_go`].
    Asks(&'static str, &'static str),
    /// A call of a tool.
    Calls(&'static str, Value),
    /// An error that is not retried.
    Fails,
}

/// The model server. Each request gets the next reply; further requests fail.
#[derive(Debug)]
pub(crate) struct ModelServer {
    server: Server,
    gate: Arc<Semaphore>,
}

impl ModelServer {
    pub(crate) async fn start(all: impl IntoIterator<Item = Scripted>) -> Self {
        let all: VecDeque<_> = all.into_iter().collect();
        let (all, gate) = (Arc::new(Mutex::new(all)), Arc::new(Semaphore::new(0)));
        let pauses = Arc::clone(&gate);
        let server = Server::start(move |request| {
            if request.path().ends_with("/models") {
                let models = json!({ "object": "list", "data": [{ "id": "scripted" }] });
                return Reply::of(200, "content-type: application/json\r\n", &models.to_string());
            }
            let next = all.lock().unwrap().pop_front().unwrap_or(Scripted::Fails);
            reply(&next, &pauses)
        });
        Self { server: server.await, gate }
    }

    /// The environment variables that make `helix` use this model.
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

    /// Waits for the next request.
    pub(crate) async fn requested(&self) {
        self.server.arrived().await;
    }

    /// Continues a paused reply.
    pub(crate) fn let_go(&self) {
        self.gate.add_permits(1);
    }
}

fn reply(scripted: &Scripted, gate: &Arc<Semaphore>) -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let words = |words: &str| event(&json!({ "content": words }), None);
    let pause = |first: &str, rest: String| {
        let first = format!("{head}{}", words(first));
        Reply::Pause(first.into_bytes(), Arc::clone(gate), rest.into_bytes())
    };
    match scripted {
        Scripted::Words(all) => {
            Reply::Send(format!("{head}{}{}", words(all), end("stop")).into_bytes())
        }
        Scripted::Waits(first, rest) => pause(first, words(rest) + &end("stop")),
        Scripted::Asks(first, tool) => pause(first, call(tool, &json!({}))),
        Scripted::Calls(tool, arguments) => {
            Reply::Send(format!("{head}{}", call(tool, arguments)).into_bytes())
        }
        Scripted::Fails => {
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
