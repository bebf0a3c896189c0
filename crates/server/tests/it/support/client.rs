//! An HTTP client without convenience, so that tests see statuses, headers and broken connections.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use helix_agents_test::within;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// A client with a token.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    token: Option<String>,
    headers: Vec<(&'static str, String)>,
}

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Response {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?} {:?}", self.status, self.body))
    }

    /// Returns the JSON of a response with this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// Checks the status and the code of an error.
    #[track_caller]
    pub(crate) fn expect_error(&self, status: u16, code: &str) {
        let body = self.expect(status);
        assert_eq!(body["error"]["code"], code, "{body}");
        assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: Option<&str>) -> Self {
        Self { address, token: token.map(str::to_owned), headers: Vec::new() }
    }

    /// Adds a header to every request.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        self.send(Method::POST, path, Some(body.to_string().into())).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Response {
        self.send(Method::DELETE, path, None).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<Bytes>) -> Response {
        let response = self.open(method, path, body).await;
        let (parts, body) = response.into_parts();
        let body = within(body.collect()).await.unwrap().to_bytes();
        Response { status: parts.status, headers: parts.headers, body }
    }

    /// Opens an event stream.
    pub(crate) async fn events(&self, path: &str) -> Events {
        Self::opened(self.open(Method::GET, path, None).await).await
    }

    /// Opens the event stream with which the server answers a body.
    pub(crate) async fn posted_events(&self, path: &str, body: Value) -> Events {
        Self::opened(self.open(Method::POST, path, Some(body.to_string().into())).await).await
    }

    async fn opened(response: http::Response<Incoming>) -> Events {
        let status = response.status();
        assert_eq!(status, StatusCode::OK, "{:?}", response.into_body().collect().await);
        let headers = response.headers().clone();
        Events { headers, body: response.into_body(), buffer: BytesMut::new(), is_broken: false }
    }

    async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> http::Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        let has_host = self.headers.iter().any(|(name, _)| *name == "host");
        if !has_host {
            request = request.header(HOST, "localhost");
        }
        if body.is_some() && !self.headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body.unwrap_or_default())).unwrap();
        within(sender.send_request(request)).await.unwrap()
    }
}

/// An open event stream.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) headers: HeaderMap,
    body: Incoming,
    buffer: BytesMut,
    is_broken: bool,
}

/// A server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) data: Value,
}

impl Events {
    /// Returns the next block of lines: an event, or a comment. `None` after a clean end.
    pub(crate) async fn next_block(&mut self) -> Result<Option<String>, hyper::Error> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block = self.buffer.split_to(at + 2);
                return Ok(Some(String::from_utf8(block.to_vec()).unwrap()));
            }
            match within(self.body.frame()).await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => {
                    self.is_broken = true;
                    return Err(error);
                }
                None => {
                    assert!(self.buffer.is_empty(), "{:?}", self.buffer);
                    return Ok(None);
                }
            }
        }
    }

    /// Returns `true` if the connection broke in the middle of the stream.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns the next event; comments are skipped.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, hyper::Error> {
        while let Some(block) = self.next_block().await? {
            if !block.starts_with(':') {
                return Ok(Some(Event::parse(&block)));
            }
        }
        Ok(None)
    }

    /// Reads events until one of this type.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.unwrap().expect("the stream goes on");
            let is_last = event.kind() == kind;
            events.push(event);
            if is_last {
                return events;
            }
        }
    }

    /// Reads all events up to a clean end.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await.unwrap() {
            events.push(event);
        }
        events
    }
}

impl Event {
    pub(crate) fn parse(block: &str) -> Self {
        let mut event = Self { id: None, name: None, data: Value::Null };
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (field, value) = line.split_once(": ").unwrap();
            match field {
                "id" => event.id = Some(value.parse().unwrap()),
                "event" => event.name = Some(value.to_owned()),
                "data" if value == "[DONE]" => event.name = Some("done".to_owned()),
                "data" => event.data = serde_json::from_str(value).unwrap(),
                _ => panic!("an unknown field: {line}"),
            }
        }
        event
    }

    /// Returns the type of the chunk, or the name of the event.
    pub(crate) fn kind(&self) -> &str {
        match &self.name {
            Some(name) => name,
            None => self.data["type"].as_str().unwrap(),
        }
    }
}

/// Returns the text of a model's reply as the events show it.
pub(crate) fn text_of(events: &[Event]) -> String {
    let deltas = events.iter().filter(|event| event.kind() == "text_delta");
    deltas.map(|event| event.data["delta"].as_str().unwrap()).collect()
}
