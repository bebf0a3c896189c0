//! Bodies of server-sent events: the stored chunks of a session, or the events of a front end's protocol.

mod chunks;
mod end;
mod frame;
mod reader;
mod session_chunks;
mod source;
mod turn;
mod watchdog;

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use helix_agents_core::error::{Error, ErrorCode};
use http_body::Frame;
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub(crate) use chunks::{ChunkOptions, Chunks};
pub(crate) use reader::Reader;
pub(crate) use turn::{Progress, Translator, Turn};

/// The body of an event stream.
///
/// It is a reader of the session's stream and has no task and no queue of its own: the server polls it when the socket
/// can take more, so a slow client costs nothing but its own connection. A watchdog releases the reader if the client
/// takes nothing for [`stall_timeout`](crate::Limits::stall_timeout).
///
/// The body breaks the connection when it ends early (the store fails, the server shuts down, the client stalls). A
/// clean end would look like a complete stream to clients.
pub(crate) struct EventStream {
    slot: Arc<Slot>,
    watchdog: AbortHandle,
}

/// The reader, shared with its watchdog.
struct Slot {
    state: Mutex<State>,
}

struct State {
    /// The reader; `None` once the stream has ended or was released.
    reader: Option<Reader>,
    /// The time since which the client has had data that it did not take. `None` while the stream waits for chunks.
    unread_since: Option<Instant>,
    was_released: bool,
}

impl EventStream {
    /// Creates the body and starts its watchdog.
    pub(crate) fn new(reader: Reader) -> Self {
        let timeout = reader.stall_timeout();
        // The response itself is data that the client has not taken yet.
        let state =
            State { reader: Some(reader), unread_since: Some(Instant::now()), was_released: false };
        let slot = Arc::new(Slot { state: Mutex::new(state) });
        let watchdog = watchdog::start(Arc::clone(&slot), timeout);
        Self { slot, watchdog }
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl http_body::Body for EventStream {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let mut state = self.slot.lock();
        let Some(reader) = &mut state.reader else {
            let was_released = state.was_released;
            return Poll::Ready(was_released.then(|| {
                let message = "the client did not read the stream for too long";
                Err(Error::new(ErrorCode::RequestTimeout, message))
            }));
        };
        let polled = reader.poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            state.reader = None;
        }
        state.unread_since = polled.is_ready().then(Instant::now);
        polled.map(|frame| frame.map(|frame| frame.map(Frame::data)))
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.watchdog.abort();
    }
}
