//! An OTLP receiver over HTTP.

use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A request: its head in lower case, and its body.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Returns the names of the spans. The body must not be compressed.
    pub(crate) fn span_names(&self) -> Vec<String> {
        let request = ExportTraceServiceRequest::decode(&*self.body).unwrap();
        let scopes = request.resource_spans.into_iter().flat_map(|spans| spans.scope_spans);
        scopes.flat_map(|scope| scope.spans).map(|span| span.name).collect()
    }
}

/// A receiver that answers with these statuses, and with the last one for all further requests.
pub(crate) struct Receiver {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Receiver {
    pub(crate) async fn start(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let seen = Arc::clone(&seen);
                tokio::spawn(async move { serve(stream, &seen, statuses).await });
            }
        });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers the requests of a connection.
async fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Request>>, statuses: &[u16]) {
    let mut received = Vec::new();
    loop {
        let Some(request) = read(&mut stream, &mut received).await else { return };
        let number = {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(request);
            seen.len() - 1
        };
        let status = statuses.get(number).or(statuses.last()).unwrap();
        let answer = format!("HTTP/1.1 {status} Status\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.unwrap().parse().unwrap();
            if received.len() >= end + 4 + length {
                let body = received[end + 4..end + 4 + length].to_vec();
                received.drain(..end + 4 + length);
                return Some(Request { head, body });
            }
        }
        if stream.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
}
