//! Requests to a run by signals.

use anyhow::Result;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::RunHandle;
use helix_agents::terminal::LiveView;
use helix_agents::terminal::notice;
use helix_agents::terminal::output;

use super::stopped::stopped;
use crate::run_view::RunView;
use crate::signals::Signal;

/// The requests made so far.
pub(super) struct Requests<'a> {
    handle: &'a RunHandle,
    run_view: RunView<'a>,
    interrupts: u32,
    terminating: bool,
}

impl<'a> Requests<'a> {
    /// Creates the state before any request.
    pub(super) fn new(handle: &'a RunHandle, run_view: RunView<'a>) -> Self {
        Self { handle, run_view, interrupts: 0, terminating: false }
    }

    /// Returns `true` if the runtime is to be shut down.
    pub(super) fn is_terminating(&self) -> bool {
        self.terminating
    }

    /// Forwards a signal to the run and shows that.
    pub(super) async fn forward(&mut self, signal: Signal, view: &mut LiveView<'_>) -> Result<()> {
        if self.terminating {
            leave(self.handle, self.run_view);
        }
        if signal == Signal::Terminate {
            self.terminating = true;
            self.say(match self.run_view.db.is_server() {
                true => "leaving: the run continues at the server",
                false => "terminating: the session can be resumed",
            });
            view.set_request("terminating");
            return Ok(());
        }
        self.interrupts += 1;
        let reason = Some("Ctrl-C".to_owned());
        let (requested, label, message) = if self.interrupts == 1 {
            let message = "interrupting at the end of this step; Ctrl-C again aborts";
            (self.handle.interrupt(reason).await, "interrupting", message)
        } else {
            (self.handle.abort(reason).await, "aborting", "aborting")
        };
        match requested {
            Ok(()) => {
                self.say(message);
                view.set_request(label);
                Ok(())
            }
            // The run has ended meanwhile.
            Err(error) if error.code() == ErrorCode::NothingToStop => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn say(&self, message: &str) {
        if !self.run_view.screen.is_json() {
            notice(message);
        }
    }
}

/// Exits the program immediately, without waiting for the runtime to shut down. The run is left like
/// the run of a killed process.
#[expect(clippy::exit, reason = "a normal return would wait for the runtime")]
pub(super) fn leave(handle: &RunHandle, run_view: RunView<'_>) -> ! {
    output::hide_status();
    let message = "the program was signalled again and exited before the run stopped";
    let exit = stopped(Error::new(ErrorCode::Closed, message), handle, run_view);
    std::process::exit(exit as i32)
}
