//! The events of AG-UI.

use helix_agents_core::error::Result;
use helix_agents_core::stream::StoredChunk;
use helix_agents_protocols::ag_ui::{self, Event, Options, RunAgentInput};
use helix_agents_protocols::sse;

use crate::event_stream::{Progress, Translator};
use crate::view::View;

/// Translates a turn to the events of AG-UI.
pub(crate) struct AgUi {
    translator: ag_ui::Translator,
    events: Vec<Event>,
}

impl AgUi {
    /// Creates the translator of the view's present turn for the client that sent this request.
    pub(crate) fn new(view: &View, input: RunAgentInput, options: Options) -> Self {
        let translator = ag_ui::Translator::new(&view.folds(), input.run, options);
        let translator = translator.with_client_reasoning(input.reasoning);
        Self { translator, events: Vec::new() }
    }

    /// Adds the chunks in progress of the view.
    fn add_live(&mut self, view: &View, mut progress: ag_ui::Progress) -> ag_ui::Progress {
        for stored in &view.page.live {
            if progress == ag_ui::Progress::Open {
                progress = self.translator.push(stored, &mut self.events);
            }
        }
        progress
    }

    /// Writes the translated events. `id` is the position in the stream that they bring the client to.
    fn write(
        &mut self,
        progress: ag_ui::Progress,
        id: Option<u64>,
        frames: &mut Vec<u8>,
    ) -> Result<Progress> {
        frames.extend(sse::frames(self.events.drain(..), id)?);
        Ok(match progress {
            ag_ui::Progress::Open => Progress::Open,
            ag_ui::Progress::Done => Progress::Done,
            ag_ui::Progress::Reload => Progress::Reload,
        })
    }
}

impl Translator for AgUi {
    fn begin(&mut self, view: &View, frames: &mut Vec<u8>) -> Result<Progress> {
        let progress = self.translator.begin(&view.folds(), &mut self.events);
        let progress = self.add_live(view, progress);
        self.write(progress, None, frames)
    }

    fn push(&mut self, stored: &StoredChunk, frames: &mut Vec<u8>) -> Result<Progress> {
        let progress = self.translator.push(stored, &mut self.events);
        self.write(progress, Some(stored.seq), frames)
    }

    fn reload(&mut self, view: &View, frames: &mut Vec<u8>) -> Result<Progress> {
        let progress = self.translator.reload(&view.folds(), &mut self.events);
        let progress = self.add_live(view, progress);
        self.write(progress, None, frames)
    }

    /// The snapshots of another view show the end.
    fn missed_end(&self) -> Progress {
        Progress::Reload
    }
}
