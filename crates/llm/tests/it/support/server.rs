//! A scripted HTTP/1.1 server. It records requests and plays replies byte for byte, each piece in
//! its own HTTP chunk, so that the client reads it as one piece.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A recorded request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.eq_ignore_ascii_case(name)).then(|| value.trim().to_owned())
        })
    }
}

/// An action of the server.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Send(Vec<u8>),
    /// Waits until the client closes the connection.
    AwaitClose,
    Close,
}

/// The actions for one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply(pub(crate) Vec<Act>);

impl Reply {
    /// The head of a reply whose body is sent in pieces.
    pub(crate) fn head(content_type: &str) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        Self(vec![Act::Send(head.into_bytes())])
    }

    pub(crate) fn piece(mut self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.0.push(Act::Send(chunk));
        self
    }

    pub(crate) fn pieces<T: AsRef<[u8]>>(self, pieces: impl IntoIterator<Item = T>) -> Self {
        pieces.into_iter().fold(self, Self::piece)
    }

    pub(crate) fn end(mut self) -> Self {
        self.0.push(Act::Send(b"0\r\n\r\n".to_vec()));
        self
    }

    pub(crate) fn then(mut self, act: Act) -> Self {
        self.0.push(act);
        self
    }

    /// A stream that ends normally.
    pub(crate) fn events<T: AsRef<[u8]>>(pieces: impl IntoIterator<Item = T>) -> Self {
        Self::head("text/event-stream; charset=utf-8").pieces(pieces).end()
    }

    /// A stream whose connection breaks after these pieces.
    pub(crate) fn broken<T: AsRef<[u8]>>(pieces: impl IntoIterator<Item = T>) -> Self {
        Self::head("text/event-stream").pieces(pieces).then(Act::Close)
    }

    /// Sends everything in one write.
    pub(crate) fn at_once(self) -> Self {
        let mut all = Vec::new();
        for act in self.0 {
            let Act::Send(bytes) = act else { panic!("only `Send` actions can be combined") };
            all.extend(bytes);
        }
        Self(vec![Act::Send(all)])
    }

    pub(crate) fn json(body: &str) -> Self {
        Self::head("application/json").piece(body).end()
    }

    /// A reply with a status, headers (each with its line end) and a body.
    pub(crate) fn status(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        Self(vec![Act::Send(text.into_bytes())])
    }
}

/// Returns the reply to a request.
type Answer = dyn FnMut(&Request) -> Reply + Send;

struct Shared {
    answer: Mutex<Box<Answer>>,
    requests: Mutex<Vec<Request>>,
    arrived: Semaphore,
    closed: Semaphore,
    connections: AtomicUsize,
}

/// The server. It stops when it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves these replies in the order of the requests.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let mut replies = replies.into_iter();
        let none = || Reply::status(418, "", "no reply is left");
        Self::answering(move |_| replies.next().unwrap_or_else(none)).await
    }

    /// Serves what `answer` returns.
    pub(crate) async fn answering(answer: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            answer: Mutex::new(Box::new(answer)),
            requests: Mutex::default(),
            arrived: Semaphore::new(0),
            closed: Semaphore::new(0),
            connections: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&serving);
                tokio::spawn(async move { serve(stream, &shared).await });
            }
        });
        Self { port, shared, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Returns the body of the only request.
    #[track_caller]
    pub(crate) fn only_body(&self) -> serde_json::Value {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "requests");
        requests[0].json()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Returns after the next request has arrived.
    pub(crate) async fn arrived(&self) {
        self.shared.arrived.acquire().await.unwrap().forget();
    }

    /// Returns after a client has closed a connection under [`Act::AwaitClose`].
    pub(crate) async fn closed(&self) {
        self.shared.closed.acquire().await.unwrap().forget();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        let reply = (*shared.answer.lock().unwrap())(&request);
        shared.requests.lock().unwrap().push(request);
        shared.arrived.add_permits(1);
        for act in reply.0 {
            match act {
                Act::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Act::AwaitClose => {
                    let mut byte = [0];
                    while matches!(stream.read(&mut byte).await, Ok(1)) {}
                    shared.closed.add_permits(1);
                    return;
                }
                Act::Close => return,
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(buffer[..at].to_vec()).unwrap();
            let mut request = Request { head, body: Vec::new() };
            let length = request.header("content-length").map_or(0, |value| value.parse().unwrap());
            while buffer.len() < at + 4 + length {
                stream.read_buf(buffer).await.ok().filter(|length| *length > 0)?;
            }
            request.body = buffer[at + 4..at + 4 + length].to_vec();
            buffer.drain(..at + 4 + length);
            return Some(request);
        }
        stream.read_buf(buffer).await.ok().filter(|length| *length > 0)?;
    }
}
