//! The reader's display. It keeps text by attempt, so that the text of a discarded attempt can be
//! removed.

use helix_agents::stream::{Attempt, ChunkKind, StoredChunk};

/// The text on the screen, in pieces that each belong to an attempt.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    pieces: Vec<(Option<Attempt>, String)>,
}

impl Screen {
    /// Shows a chunk. Returns its sequence number.
    pub(crate) fn show(&mut self, stored: &StoredChunk) -> u64 {
        let seq = stored.seq;
        match &stored.chunk.kind {
            ChunkKind::TextDelta { delta: text }
            | ChunkKind::ToolProgress { message: text, .. } => {
                println!("{seq:4} show    {text:?}");
                self.pieces.push((stored.attempt, text.clone()));
            }
            ChunkKind::StepDiscarded { attempts } => {
                println!("{seq:4} discard {attempts:?}");
                self.pieces.retain(|(of, _)| of.is_none_or(|of| !attempts.contains(&of)));
            }
            ChunkKind::StreamResync => {
                // Earlier chunks were trimmed. A full reader would load their content from the
                // session's log.
                println!("{seq:4} resync");
                self.pieces.clear();
            }
            ChunkKind::RunEnded { status, .. } => println!("{seq:4} run     {status}"),
            _ => {}
        }
        seq
    }

    /// Returns all text on the screen.
    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }
}
