//! The UI message stream of the AI SDK.

use std::time::Duration;

use helix_agents_core::error::Result;
use helix_agents_core::stream::StoredChunk;
use helix_agents_protocols::ai_sdk::{self, Options, Seen, UiChunk};
use helix_agents_protocols::sse;

use crate::event_stream::{Progress, Translator};
use crate::view::View;

/// Translates a turn to the UI message stream.
pub(crate) struct AiSdk {
    translator: ai_sdk::Translator,
    chunks: Vec<UiChunk>,
}

impl AiSdk {
    /// Creates the translator of the view's present turn. `seen` is what the page keeps of the turn's message.
    pub(crate) fn new(view: &View, seen: Option<Seen>, options: Options) -> Self {
        let translator = ai_sdk::Translator::new(&view.folds(), options);
        let translator = match seen {
            Some(seen) => translator.continuing(seen),
            None => translator,
        };
        Self { translator, chunks: Vec::new() }
    }

    /// Writes the translated chunks. `id` is the position in the stream that they bring the page to.
    fn write(
        &mut self,
        progress: ai_sdk::Progress,
        id: Option<u64>,
        frames: &mut Vec<u8>,
    ) -> Result<Progress> {
        frames.extend(sse::frames(self.chunks.drain(..), id)?);
        Ok(match progress {
            ai_sdk::Progress::Open => Progress::Open,
            ai_sdk::Progress::Broken => Progress::Broken,
            ai_sdk::Progress::Done => {
                frames.extend_from_slice(sse::DONE);
                Progress::Done
            }
        })
    }
}

impl Translator for AiSdk {
    fn begin(&mut self, view: &View, frames: &mut Vec<u8>) -> Result<Progress> {
        let mut progress = self.translator.begin(&view.folds(), &mut self.chunks);
        for stored in &view.page.live {
            if progress == ai_sdk::Progress::Open {
                progress = self.translator.push(stored, &mut self.chunks);
            }
        }
        self.write(progress, None, frames)
    }

    fn push(&mut self, stored: &StoredChunk, frames: &mut Vec<u8>) -> Result<Progress> {
        let progress = self.translator.push(stored, &mut self.chunks);
        self.write(progress, Some(stored.seq), frames)
    }

    /// The page cannot take anything back within a response.
    fn reload(&mut self, _: &View, _: &mut Vec<u8>) -> Result<Progress> {
        Ok(Progress::Broken)
    }

    fn delay(&self) -> Option<Duration> {
        self.translator.has_delayed().then_some(ai_sdk::Translator::DELAY)
    }

    fn flush(&mut self, frames: &mut Vec<u8>) -> Result<()> {
        self.translator.flush(&mut self.chunks);
        frames.extend(sse::frames(self.chunks.drain(..), None)?);
        Ok(())
    }

    fn missed_end(&self) -> Progress {
        Progress::Broken
    }
}
