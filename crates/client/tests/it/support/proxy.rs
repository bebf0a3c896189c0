//! A TCP proxy that breaks connections in the middle of a response, and can change its server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A proxy on a port of its own.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    rules: Arc<Mutex<Rules>>,
}

struct Rules {
    server: SocketAddr,
    /// The start of the requests whose connections are cut.
    marked: &'static str,
    /// The number of bytes of the response that pass before the next cuts, one for each connection.
    cuts: Vec<usize>,
    /// The number of cuts that took place.
    done: usize,
}

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let rules = Arc::new(Mutex::new(Rules { server, marked: "", cuts: Vec::new(), done: 0 }));
        let shared = Arc::clone(&rules);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, Arc::clone(&shared)));
            }
        });
        Self { address, rules }
    }

    /// Cuts the connections of the next requests with this start, each after this number of bytes of its response.
    pub(crate) fn cut(&self, marked: &'static str, after: impl IntoIterator<Item = usize>) {
        let mut rules = self.rules.lock().unwrap();
        (rules.marked, rules.cuts) = (marked, after.into_iter().collect());
        rules.cuts.reverse();
    }

    /// Returns the number of connections that were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.rules.lock().unwrap().done
    }

    /// Forwards new connections to another server.
    pub(crate) fn redirect(&self, server: SocketAddr) {
        self.rules.lock().unwrap().server = server;
    }
}

async fn forward(mut client: TcpStream, rules: Arc<Mutex<Rules>>) {
    let server = rules.lock().unwrap().server;
    // Without a server, the client's connection ends as well.
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut left: Option<usize> = None;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                left = take_cut(&rules, &asked[..count]).or(left);
                if server.write_all(&asked[..count]).await.is_err() { return }
            }
            read = server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                let passed = left.map_or(count, |left| left.min(count));
                if client.write_all(&answered[..passed]).await.is_err() { return }
                let Some(remaining) = &mut left else { continue };
                *remaining -= passed;
                if *remaining == 0 {
                    rules.lock().unwrap().done += 1;
                    return;
                }
            }
        }
    }
}

/// Returns the number of bytes after which the connection of this request is cut, if it is.
fn take_cut(rules: &Mutex<Rules>, request: &[u8]) -> Option<usize> {
    let mut rules = rules.lock().unwrap();
    let is_marked = !rules.marked.is_empty() && request.starts_with(rules.marked.as_bytes());
    if is_marked { rules.cuts.pop() } else { None }
}
