//! Streams whose store answers late.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents::error::Result;
use helix_agents::id::SessionId;
use helix_agents::store::WriteQueue;
use helix_agents::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};
use helix_agents_testkit::trees::Stores;

use crate::scenarios::note_line;

/// The stores with streams of which each operation takes `HELIX_STREAM_MS` longer, if that is set. Each write leaves
/// a line in the file `streams` beside the trace before it waits.
///
/// # Errors
/// If the variable is no number.
pub fn from_env(stores: Stores, trace: &Path) -> anyhow::Result<Stores> {
    let Ok(takes) = std::env::var("HELIX_STREAM_MS") else { return Ok(stores) };
    let takes = Duration::from_millis(takes.parse()?);
    let writes = trace.with_file_name("streams");
    let streams = SlowStreams { inner: stores.streams, takes, writes };
    Ok(Stores { streams: Arc::new(streams), ..stores })
}

#[derive(Debug)]
struct SlowStreams {
    inner: Arc<dyn StreamManager>,
    takes: Duration,
    writes: PathBuf,
}

impl SlowStreams {
    async fn wait(&self) {
        tokio::time::sleep(self.takes).await;
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StreamManager for SlowStreams {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        // The test counts what it does not find.
        let _noted = note_line(&self.writes, stream.as_str());
        self.wait().await;
        self.inner.write(stream, batch).await
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        None
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        self.wait().await;
        self.inner.read(stream, from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.wait().await;
        self.inner.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.wait().await;
        self.inner.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId, seen: &StreamInfo) -> Result<bool> {
        self.wait().await;
        self.inner.forget(stream, seen).await
    }
}
