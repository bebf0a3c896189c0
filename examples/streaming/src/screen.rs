//! What a reader shows: text by the attempt that it belongs to, so that it can be taken back.

use helix_agents::stream::{Attempt, ChunkKind, StoredChunk};

/// The text on the screen.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    pieces: Vec<(Option<Attempt>, String)>,
}

impl Screen {
    /// Shows a chunk; answers its number.
    pub(crate) fn show(&mut self, stored: &StoredChunk) -> u64 {
        let seq = stored.seq;
        match &stored.chunk.kind {
            ChunkKind::TextDelta { delta: text }
            | ChunkKind::ToolProgress { message: text, .. } => {
                println!("{seq:4} show      {text:?}");
                self.pieces.push((stored.attempt, text.clone()));
            }
            ChunkKind::StepDiscarded { attempts } => {
                println!("{seq:4} take back {attempts:?}");
                self.pieces.retain(|(of, _)| of.is_none_or(|of| !attempts.contains(&of)));
            }
            ChunkKind::StreamResync => {
                // Chunks are gone: what they showed has to be read from the session's log.
                println!("{seq:4} resync");
                self.pieces.clear();
            }
            ChunkKind::RunEnded { status } => println!("{seq:4} run       {status}"),
            _ => {}
        }
        seq
    }

    /// All that is on it.
    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }
}
