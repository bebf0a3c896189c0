//! Playing inputs: a server on a loopback port sends them to an adapter, and receives its requests.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use helix_agents_core::error::Error;
use helix_agents_core::llm::{LlmResponse, LlmSink, NoSink};
use helix_agents_core::message::SharedMessage;
use helix_agents_llm::{ApiFormat, ModelServer, ModelServerOptions};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::check::Checked;
use super::input::Input;
use crate::play::{self, CallOptions};

/// The maximum time of a call. Its input is complete, so it never waits for anything.
const LIMIT: Duration = Duration::from_secs(20);

/// A server and an adapter that calls it.
pub(crate) struct Player {
    runtime: Runtime,
    server: ModelServer,
    peer: Arc<Peer>,
}

/// The server's side of the connections.
#[derive(Debug, Default)]
struct Peer {
    responses: Mutex<VecDeque<Response>>,
    /// The body of the last request.
    received: Mutex<Vec<u8>>,
}

#[derive(Debug)]
struct Response {
    bytes: Vec<u8>,
    is_aborted: bool,
}

impl Player {
    pub(crate) fn new(format: ApiFormat) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let url = format!("http://{}", listener.local_addr()?);
        let options =
            ModelServerOptions::new("local", &url).with_format(format).with_default_model("model");
        let server = ModelServer::new(options)?;
        let peer = Arc::new(Peer::default());
        drop(runtime.spawn(accept(listener, Arc::clone(&peer))));
        Ok(Self { runtime, server, peer })
    }

    /// Prepares the response to the next request.
    pub(crate) fn prepare(&self, input: &Input) {
        self.answer(Response { bytes: input.response(), is_aborted: input.is_aborted });
    }

    /// Makes a call that receives the prepared response. Returns an error if the adapter panics or the call does not end.
    pub(crate) fn play(
        &self,
        input: &Input,
        sink: &dyn LlmSink,
    ) -> Checked<Result<LlmResponse, Error>> {
        let schema = input.is_structured.then(|| json!({"type": "object"}));
        let options = CallOptions { schema, ..CallOptions::default() };
        self.call(&[play::question()], &options, sink)
    }

    /// Makes a call with a transcript, and returns the body of its request.
    pub(crate) fn request(&self, messages: &[SharedMessage]) -> Checked<Vec<u8>> {
        let bytes = b"HTTP/1.1 400 Refused\r\ncontent-length: 2\r\n\r\n{}".to_vec();
        self.answer(Response { bytes, is_aborted: false });
        lock(&self.peer.received).clear();
        let result = self.call(messages, &CallOptions::default(), &NoSink)?;
        let body = std::mem::take(&mut *lock(&self.peer.received));
        if body.is_empty() {
            return Err(format!("the reply cannot be sent back: {result:?}"));
        }
        Ok(body)
    }

    fn call(
        &self,
        messages: &[SharedMessage],
        options: &CallOptions,
        sink: &dyn LlmSink,
    ) -> Checked<Result<LlmResponse, Error>> {
        let call =
            async { timeout(LIMIT, play::call(&self.server, messages, options, sink)).await };
        match catch_unwind(AssertUnwindSafe(|| self.runtime.block_on(call))) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => Err("the call does not end".to_owned()),
            Err(_) => Err("the adapter panics".to_owned()),
        }
    }

    fn answer(&self, response: Response) {
        let mut responses = lock(&self.peer.responses);
        // The call of an earlier response may have ended without a request.
        responses.clear();
        responses.push_back(response);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, peer: Arc<Peer>) {
    while let Ok((connection, _)) = listener.accept().await {
        drop(tokio::spawn(serve(connection, Arc::clone(&peer))));
    }
}

/// Answers the requests of a connection until either side closes it.
async fn serve(mut connection: TcpStream, peer: Arc<Peer>) {
    while let Ok(body) = play::read_request(&mut connection).await {
        *lock(&peer.received) = body;
        let Some(response) = lock(&peer.responses).pop_front() else { return };
        let is_sent = connection.write_all(&response.bytes).await.is_ok();
        if !is_sent || response.is_aborted {
            return;
        }
    }
}
