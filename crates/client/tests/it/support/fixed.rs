//! Servers with fixed responses.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Starts a server that gives these responses, one for each connection, and then no more. Returns its address and the
/// heads of the requests.
pub(crate) async fn fixed(
    responses: impl IntoIterator<Item = String>,
) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, received) = mpsc::unbounded_channel();
    let responses: Vec<_> = responses.into_iter().collect();
    tokio::spawn(async move {
        for response in responses {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let mut head = Vec::new();
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut piece = [0; 4096];
                let Ok(count @ 1..) = stream.read(&mut piece).await else { break };
                head.extend_from_slice(&piece[..count]);
            }
            let _unread = heads.send(String::from_utf8_lossy(&head).into_owned());
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    (address, received)
}
