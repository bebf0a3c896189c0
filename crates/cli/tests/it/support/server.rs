//! Local HTTP/1.1 servers: one with programmable replies, and one that acts as a model with an
//! OpenAI-compatible API.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The reply to a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Send these bytes and close the connection.
    Send(Vec<u8>),
    /// Send nothing until the client closes the connection.
    Hold,
    /// Send the first bytes, and the rest when the semaphore has a permit.
    Pause(Vec<u8>, Arc<Semaphore>, Vec<u8>),
}

impl Reply {
    /// A complete reply; each header ends with a line end.
    pub(crate) fn of(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} Status\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        Self::Send(text.into_bytes())
    }

    /// A reply with plain text.
    pub(crate) fn text(body: &str) -> Self {
        Self::of(200, "content-type: text/plain\r\n", body)
    }
}

/// A server with programmable replies. It stops on drop.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    arrived: Arc<Semaphore>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(
        answer: impl Fn(&Request) -> Reply + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, arrived) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(Semaphore::new(0)));
        let (all, arrivals) = (Arc::clone(&requests), Arc::clone(&arrived));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, all, arrivals) =
                    (answer.clone(), Arc::clone(&all), Arc::clone(&arrivals));
                tokio::spawn(async move {
                    serve(stream, |request| {
                        let reply = answer(&request);
                        all.lock().unwrap().push(request);
                        arrivals.add_permits(1);
                        reply
                    })
                    .await;
                });
            }
        });
        Self { port, requests, arrived, task }
    }

    /// The requests received so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits for the next request.
    pub(crate) async fn arrived(&self) {
        self.arrived.acquire().await.unwrap().forget();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, answer: impl FnOnce(Request) -> Reply) {
    let Some(request) = read_request(&mut stream).await else { return };
    match answer(request) {
        Reply::Send(bytes) => {
            // The client may have closed the connection.
            let _gone = stream.write_all(&bytes).await;
            let _gone = stream.shutdown().await;
        }
        Reply::Pause(first, gate, rest) => {
            let _gone = stream.write_all(&first).await;
            gate.acquire().await.unwrap().forget();
            let _gone = stream.write_all(&rest).await;
            let _gone = stream.shutdown().await;
        }
        Reply::Hold => while matches!(stream.read(&mut [0]).await, Ok(1)) {},
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut buffer = Vec::new();
    loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(buffer[..at].to_vec()).unwrap();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                is_length.then(|| value.trim().parse::<usize>().unwrap())
            });
            let end = at + 4 + length.unwrap_or(0);
            while buffer.len() < end {
                stream.read_buf(&mut buffer).await.ok().filter(|read| *read > 0)?;
            }
            return Some(Request { head, body: buffer[at + 4..end].to_vec() });
        }
        stream.read_buf(&mut buffer).await.ok().filter(|read| *read > 0)?;
    }
}

/// A reply of the model.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    Text(&'static str),
    Calls(Vec<(&'static str, Value)>),
    /// No reply.
    Silence,
}

impl Turn {
    /// A call of one tool.
    pub(crate) fn call(tool: &'static str, arguments: Value) -> Self {
        Self::Calls(vec![(tool, arguments)])
    }

    /// The typed output of an agent.
    pub(crate) fn finish(output: Value) -> Self {
        Self::call("__finish__", output)
    }

    /// The reply of the server.
    pub(crate) fn reply(&self) -> Reply {
        let mut pieces = Vec::new();
        let delta = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
        let reason = match self {
            Self::Silence => return Reply::Hold,
            Self::Text(text) => {
                let words = text.split_inclusive(' ');
                pieces.extend(words.map(|word| delta(json!({ "content": word }))));
                "stop"
            }
            Self::Calls(calls) => {
                for (index, (name, arguments)) in calls.iter().enumerate() {
                    let function = json!({ "name": name, "arguments": arguments.to_string() });
                    let call = json!({
                        "index": index, "id": format!("call_{index}"), "type": "function",
                        "function": function,
                    });
                    pieces.push(delta(json!({ "tool_calls": [call] })));
                }
                "tool_calls"
            }
        };
        pieces.push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }));
        let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
        pieces.push(json!({ "model": "small", "choices": [], "usage": usage }));
        let mut body: String = pieces.iter().map(|piece| format!("data: {piece}\n\n")).collect();
        body.push_str("data: [DONE]\n\n");
        Reply::of(200, "content-type: text/event-stream\r\n", &body)
    }
}

/// A model server with these replies. The number of assistant messages in a request selects the reply, so
/// that a repeated request gets the same one.
pub(crate) async fn model(turns: Vec<Turn>) -> Server {
    Server::start(move |request| {
        if request.path().ends_with("/models") {
            let list = json!({ "object": "list", "data": [{ "id": "small" }] });
            return Reply::of(200, "content-type: application/json\r\n", &list.to_string());
        }
        let body = request.json();
        let messages = body["messages"].as_array().unwrap();
        let replied = messages.iter().filter(|message| message["role"] == "assistant").count();
        match turns.get(replied) {
            Some(turn) => turn.reply(),
            None => Reply::of(418, "content-type: text/plain\r\n", "no more replies"),
        }
    })
    .await
}
