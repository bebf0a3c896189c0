//! What a person asks of a run by signals.

use anyhow::Result;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::RunHandle;

use super::stopped;
use crate::live::LiveView;
use crate::screen::notice;
use crate::signals::Signal;
use crate::stage::Stage;
use crate::terminal;

/// What was asked so far.
pub(super) struct Requests<'a> {
    handle: &'a RunHandle,
    stage: Stage<'a>,
    interrupts: u32,
    to_terminate: bool,
}

impl<'a> Requests<'a> {
    /// Nothing yet.
    pub(super) fn new(handle: &'a RunHandle, stage: Stage<'a>) -> Self {
        Self { handle, stage, interrupts: 0, to_terminate: false }
    }

    /// Whether the runtime is to be shut down.
    pub(super) fn are_to_terminate(&self) -> bool {
        self.to_terminate
    }

    /// Passes a signal on to the run, and says so.
    pub(super) async fn pass_on(&mut self, signal: Signal, view: &mut LiveView<'_>) -> Result<()> {
        if self.to_terminate {
            leave(self.handle, self.stage);
        }
        if signal == Signal::Terminate {
            self.to_terminate = true;
            self.say("terminating: the session can be resumed");
            view.ask("terminating");
            return Ok(());
        }
        self.interrupts += 1;
        let reason = Some("Ctrl-C".to_owned());
        let (asked, what, says) = if self.interrupts == 1 {
            let says = "interrupting at the end of this step; Ctrl-C again aborts";
            (self.handle.interrupt(reason).await, "interrupting", says)
        } else {
            (self.handle.abort(reason).await, "aborting", "aborting")
        };
        match asked {
            Ok(()) => {
                self.say(says);
                view.ask(what);
                Ok(())
            }
            // It has ended meanwhile.
            Err(error) if error.code() == ErrorCode::NothingToResume => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn say(&self, message: &str) {
        if !self.stage.screen.is_json() {
            notice(message);
        }
    }
}

/// Ends the program where it stands, for whoever does not wait for a runtime that shuts down. What
/// is under way is left as by a killed process.
#[expect(clippy::exit, reason = "whatever else is done first is waited for")]
pub(super) fn leave(handle: &RunHandle, stage: Stage<'_>) -> ! {
    terminal::hide_status();
    let message = "asked again to end, the program did not wait for the run to stop";
    let exit = stopped(Error::new(ErrorCode::Closed, message), handle, stage);
    std::process::exit(exit as i32)
}
