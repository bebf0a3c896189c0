//! Writing to streams: a batch is one script and one entry of a Redis stream.

use helix_agents_core::error::{Error, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Batch, BatchPosition, BatchReceipt, CacheEntry, CachedStream, Change, Encoded,
    SessionWatermark, SharedStream, StreamLookup, encode_open, write_shared,
};

use super::stream_state;
use crate::{Inner, script};

/// A stream that a batch is being written to.
struct Stream<'a> {
    store: &'a Inner,
    session: &'a SessionId,
    encoded: Encoded,
}

impl SharedStream for Stream<'_> {
    type Failure = Error;

    async fn lookup(&mut self, places: &[BatchPosition]) -> Result<StreamLookup> {
        stream_state::lookup(self.store, self.session, places).await
    }

    async fn save(&mut self, from: u64, after: &CachedStream, change: &Change) -> Result<bool> {
        let arguments = self.arguments(from, after, change)?;
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let keys = self.store.keys.of(self.session).stream();
        let mut reply = self.store.server.eval(&script::STREAM_WRITE, &keys, &arguments).await?;
        Ok(reply.text()? == "written")
    }
}

impl Stream<'_> {
    /// Returns the arguments of the script.
    fn arguments(&self, from: u64, after: &CachedStream, change: &Change) -> Result<Vec<Vec<u8>>> {
        let (state, streams) = (&after.state, &self.store.streams);
        let own = state.marked.get(self.session).copied().unwrap_or_default();
        let body =
            if change.count == 0 { Vec::new() } else { self.encoded.body(&change.placed)? };
        let number = |number: u64| number.to_string().into_bytes();
        let mut arguments = vec![
            number(from),
            number(streams.retention),
            streams.ttl.as_millis().to_string().into_bytes(),
            number(after.revision),
            number(state.last_seq),
            number(state.last_attempt),
            number(own.version),
            number(own.seq),
            number(own.fencing_token),
            encode_open(self.session, &state.open)?.into_bytes(),
            body,
            number(change.discarded.len() as u64),
        ];
        for discarded in &change.discarded {
            arguments.extend([number(discarded.attempt.0), number(discarded.ended)]);
        }
        for child in change.marked.iter().filter(|child| *child != self.session) {
            let marked = state.marked.get(child).copied().unwrap_or_default();
            arguments.push(child.as_str().as_bytes().to_vec());
            let SessionWatermark { version, seq, fencing_token } = marked;
            arguments.push(format!("{version} {seq} {fencing_token}").into_bytes());
        }
        Ok(arguments)
    }
}

impl Inner {
    pub(super) async fn write(
        &self,
        memory: &tokio::sync::Mutex<CacheEntry>,
        session: &SessionId,
        batch: &Batch,
    ) -> Result<BatchReceipt> {
        let stream = Stream { store: self, session, encoded: Encoded::new(&batch.ops)? };
        // Within this process, writes to a stream are serialized. Each write continues from the
        // cached state of the previous one.
        let written = write_shared(stream, &mut *memory.lock().await, batch).await?;
        self.watch.written(session);
        Ok(written)
    }
}
