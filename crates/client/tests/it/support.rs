//! A server on a TCP port, a proxy that loses bytes, and servers with fixed responses.

mod fixed;
mod proxy;
mod world;

pub(crate) use fixed::fixed;
pub(crate) use proxy::Proxy;
pub(crate) use world::{TEXT, TOKEN, World, builder, fast};

use std::time::Duration;

use futures_util::StreamExt as _;
use helix_agents_client::ChunkFollower;
use helix_agents_core::stream::{ChunkKind, StoredChunk};
use helix_agents_test::within;

/// Waits for a state that nothing announces.
pub(crate) async fn until(is_reached: impl AsyncFn() -> bool) {
    let reached = async {
        while !is_reached().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(reached).await;
}

/// Reads all chunks of a stream, which must end without an error.
pub(crate) async fn rest(follower: &mut ChunkFollower) -> Vec<StoredChunk> {
    let mut chunks = Vec::new();
    while let Some(chunk) = within(follower.next()).await {
        chunks.push(chunk.unwrap());
    }
    chunks
}

/// Returns the text of the model, without that of discarded attempts.
pub(crate) fn text_of(chunks: &[StoredChunk]) -> String {
    let mut kept: Vec<&StoredChunk> = Vec::new();
    for stored in chunks {
        match &stored.chunk.kind {
            ChunkKind::StepDiscarded { .. } => kept.clear(),
            ChunkKind::TextDelta { .. } => kept.push(stored),
            _ => {}
        }
    }
    let delta = |stored: &&StoredChunk| match &stored.chunk.kind {
        ChunkKind::TextDelta { delta } => delta.clone(),
        _ => String::new(),
    };
    kept.iter().map(delta).collect()
}
