//! The stream manager.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;

use helix_agents_core::error::{Error, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};

use crate::detached::detached;
use crate::error::of_session;
use crate::{RedisStore, script};

mod read;
mod stream_state;
pub(crate) mod watch;
mod write;

/// Returns a function that adds the operation and the session to an error.
fn of(operation: &'static str, session: &SessionId) -> impl Fn(Error) -> Error {
    move |error| of_session(error, session).with_operation(operation)
}

#[async_trait]
impl StreamManager for RedisStore {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        let of = of("stream::write", stream);
        stream.check().map_err(&of)?;
        let pending = self.inner.stream_cache.register(stream, batch.id);
        let (store, cached) = (Arc::clone(&self.inner), pending.cached());
        let session = stream.clone();
        let written = detached(async move { store.write(&cached, &session, &batch).await });
        pending.complete(written.await.map_err(of))
    }

    async fn read(&self, session: &SessionId, from: u64) -> Result<ChunkStream> {
        session.check().map_err(of("stream::read", session))?;
        let reader = read::Reader::new(self.clone(), session, from);
        let chunks = futures_util::stream::unfold(Some(reader), async |reader| {
            let mut reader = reader?;
            match reader.next().await {
                Ok(chunk) => Some((Ok(chunk), Some(reader))),
                Err(error) => {
                    let error = of("stream::read", reader.session())(error);
                    Some((Err(error), None))
                }
            }
        });
        Ok(chunks.boxed())
    }

    async fn info(&self, session: &SessionId) -> Result<StreamInfo> {
        let of = of("stream::info", session);
        session.check().map_err(&of)?;
        let found = stream_state::lookup(&self.inner, session, &[]).await.map_err(of)?;
        Ok(found.known.state.info(found.known.trimmed))
    }

    async fn reset(&self, session: &SessionId) -> Result<()> {
        let of = of("stream::reset", session);
        session.check().map_err(&of)?;
        let keys = self.inner.keys.of(session).stream();
        let reset = self.inner.server.eval(&script::STREAM_RESET, &keys, &[]).await;
        reset.map_err(of)?;
        self.inner.watch.written(session);
        Ok(())
    }

    async fn forget(&self, session: &SessionId, seen: &StreamInfo) -> Result<bool> {
        let of = of("stream::forget", session);
        session.check().map_err(&of)?;
        let known = stream_state::lookup(&self.inner, session, &[]).await.map_err(&of)?.known;
        let info = known.state.info(known.trimmed);
        if info.is_empty() || info != *seen {
            return Ok(info.is_empty());
        }
        let (keys, revision) = (self.inner.keys.of(session).stream(), known.revision.to_string());
        let arguments = [revision.as_bytes()];
        let reply = self.inner.server.eval(&script::STREAM_FORGET, &keys, &arguments).await;
        let forgotten = reply.and_then(|mut reply| reply.text()).map_err(of)? == "forgotten";
        self.inner.watch.written(session);
        Ok(forgotten)
    }
}
