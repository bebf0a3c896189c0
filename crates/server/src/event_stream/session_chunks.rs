//! The chunks of one session, and of no other one that has its id later.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::stream::{ChunkKind, ChunkStream, StoredChunk};

use crate::ownership::SessionIdentity;
use crate::service::Service;

/// Reads the chunks of a root session until it is deleted.
pub(super) struct SessionChunks {
    service: Arc<Service>,
    root: SessionIdentity,
    chunks: ChunkStream,
    /// A chunk that is delivered if the session still exists.
    held: Option<Held>,
    /// Whether the first chunk was checked.
    is_checked: bool,
}

/// A chunk, and the check whether the session has existed until the chunk was read.
struct Held {
    chunk: StoredChunk,
    check: BoxFuture<'static, Result<bool>>,
}

impl SessionChunks {
    /// Opens the chunks of a session, starting with the one that has this sequence number.
    pub(super) async fn open(
        service: Arc<Service>,
        root: SessionIdentity,
        from: u64,
    ) -> Result<Self> {
        let chunks = service.executor.follow(&root.session, from).await?;
        Ok(Self { service, root, chunks, held: None, is_checked: false })
    }

    /// Returns `true` if a chunk was read and is being checked.
    pub(super) fn is_checking(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the next chunk, or `None` if the session was deleted.
    ///
    /// The first chunk and a `stream_resync` may belong to the stream of another session that has the id now. All other
    /// chunks follow one that was checked, in the same stream.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<StoredChunk>>> {
        if self.held.is_none() {
            let read = ready!(self.chunks.poll_next_unpin(cx));
            let ended_early =
                || Error::new(ErrorCode::StoreUnavailable, "the stream of chunks ended early");
            let chunk = read.ok_or_else(ended_early)??;
            let is_resync = matches!(chunk.chunk.kind, ChunkKind::StreamResync);
            if self.is_checked && !is_resync {
                return Poll::Ready(Ok(Some(chunk)));
            }
            self.is_checked = true;
            let (service, root) = (Arc::clone(&self.service), self.root.clone());
            let check = async move { root.is_current(&*service.store).await };
            self.held = Some(Held { chunk, check: check.boxed() });
        }
        let Some(held) = &mut self.held else { return Poll::Pending };
        let is_current = ready!(held.check.poll_unpin(cx));
        let held = self.held.take();
        Poll::Ready(is_current.map(|is_current| held.filter(|_| is_current).map(|held| held.chunk)))
    }
}
