//! A TCP proxy between a store and its server that loses or holds replies on command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The requests that a proxy acts on, and the form of their replies. Both functions receive bytes that
/// arrived together.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// Whether the reply to a request may be lost.
    pub is_marked: fn(&[u8]) -> bool,
    /// Whether a reply confirms that the server executed the request.
    pub is_carried_out: fn(&[u8]) -> bool,
}

impl Protocol {
    /// A protocol for a proxy that loses no replies. It can hold them.
    pub const ANY: Self = Self { is_marked: |_| false, is_carried_out: |_| true };
}

/// A proxy on a port of its own. It lives as long as the tokio runtime on which it was started.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    protocol: Protocol,
    /// Number of replies that are still to be lost.
    to_lose: AtomicU32,
    /// Whether replies are held.
    holds: watch::Sender<bool>,
    /// Number of replies that the server sent.
    replies: watch::Sender<u64>,
    /// Number of replies after which the next ones are held.
    hold_after: watch::Sender<Option<u64>>,
}

impl Proxy {
    /// Starts a proxy for the server at a URL, such as `redis://USER@HOST:PORT/PATH`.
    ///
    /// # Panics
    /// If the URL has no host with a port, or no port is free.
    pub async fn start(server: &str, protocol: Protocol) -> Self {
        let place = server.split_once("://").unwrap().1;
        let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
        let address = place.split(['/', '?']).next().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = server.replace(address, &listener.local_addr().unwrap().to_string());
        let shared = Arc::new(Shared {
            protocol,
            to_lose: AtomicU32::new(0),
            holds: watch::Sender::new(false),
            replies: watch::Sender::new(0),
            hold_after: watch::Sender::new(None),
        });
        let (address, carried) = (address.to_owned(), Arc::clone(&shared));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&address).await.unwrap();
                tokio::spawn(forward(client, server, Arc::clone(&carried)));
            }
        });
        Self { url, shared }
    }

    /// Returns the URL by which clients reach the server through the proxy.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Loses the next `replies` replies to marked requests: the connection ends instead.
    pub fn lose(&self, replies: u32) {
        self.shared.to_lose.store(replies, Ordering::SeqCst);
    }

    /// Returns `true` if all replies that were to be lost have been lost.
    #[must_use]
    pub fn all_lost(&self) -> bool {
        self.shared.to_lose.load(Ordering::SeqCst) == 0
    }

    /// Returns the number of replies that the server sent so far.
    #[must_use]
    pub fn replies(&self) -> u64 {
        *self.shared.replies.borrow()
    }

    /// Holds replies after `replies` more have passed, until [`release`](Self::release). Requests still reach
    /// the server.
    pub fn hold_after(&self, replies: u64) {
        let passed = *self.shared.replies.borrow();
        self.shared.hold_after.send_replace(Some(passed + replies));
    }

    /// Returns `true` if a reply is held now.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        *self.shared.holds.borrow()
    }

    /// Lets all replies pass again.
    pub fn release(&self) {
        self.shared.hold_after.send_replace(None);
        self.shared.holds.send_replace(false);
    }
}

impl Shared {
    /// Counts down and returns `true` if a reply to a marked request is to be lost.
    fn loses(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        self.to_lose.try_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
    }

    /// Waits while replies are held.
    async fn pass(&self) {
        let mut number = 0;
        self.replies.send_modify(|replies| {
            *replies += 1;
            number = *replies;
        });
        if self.hold_after.borrow().is_some_and(|after| number > after) {
            self.holds.send_replace(true);
        }
        // `self` holds the sender, so the wait cannot fail.
        drop(self.holds.subscribe().wait_for(|holds| !holds).await);
    }
}

/// Forwards bytes in both directions until one side ends, or a reply is lost.
async fn forward(mut client: TcpStream, mut server: TcpStream, shared: Arc<Shared>) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut is_marked = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                let request = &asked[..count];
                is_marked = (shared.protocol.is_marked)(request);
                if server.write_all(request).await.is_err() { return }
            }
            read = server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                let reply = &answered[..count];
                let is_lost = is_marked && (shared.protocol.is_carried_out)(reply) && shared.loses();
                if is_lost { return }
                shared.pass().await;
                if client.write_all(reply).await.is_err() { return }
            }
        }
    }
}
