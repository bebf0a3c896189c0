//! A model server that streams slowly, and notices when the client disconnects.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The behaviour of a server for one connection.
#[derive(Debug, Clone)]
pub(crate) enum Play {
    /// Streams these pieces of text and the end of the reply.
    Whole(Vec<String>),
    /// Streams these pieces of text, and then waits until the client disconnects.
    AndWait(Vec<String>),
}

/// The state of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server has sent its pieces, and waits until the client disconnects.
    Waiting,
    /// The connection was served to its end.
    Served,
    /// The client closed the connection before the end of the reply.
    Closed,
}

/// Serves each play to a separate connection. Returns the address, and the states of the
/// connections.
pub(crate) async fn serve(plays: Vec<Play>) -> (String, mpsc::UnboundedReceiver<Ended>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for play in plays {
            let (stream, _) = listener.accept().await.unwrap();
            let ended = reply(stream, play, &sender).await;
            if sender.send(ended).is_err() {
                return;
            }
        }
    });
    (url, receiver)
}

async fn reply(mut stream: TcpStream, play: Play, sender: &mpsc::UnboundedSender<Ended>) -> Ended {
    read_request(&mut stream).await;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (pieces, whole) = match play {
        Play::Whole(pieces) => (pieces, true),
        Play::AndWait(pieces) => (pieces, false),
    };
    for piece in pieces {
        let chunk =
            serde_json::json!({ "choices": [{ "index": 0, "delta": { "content": piece } }] });
        stream.write_all(format!("data: {chunk}\n\n").as_bytes()).await.unwrap();
    }
    if whole {
        let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        stream.write_all(end.as_bytes()).await.unwrap();
        return Ended::Served;
    }
    drop(sender.send(Ended::Waiting));
    let mut byte = [0];
    while matches!(stream.read(&mut byte).await, Ok(1)) {}
    Ended::Closed
}

async fn read_request(stream: &mut TcpStream) {
    let mut request = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase();
            let length = length.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
                return;
            }
        }
    }
}
