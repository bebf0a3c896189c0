//! Reports runs that stopped without ending.

use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::RunHandle;
use helix_agents::terminal::notice;

use crate::exit::Exit;
use crate::failure;
use crate::follow_up;
use crate::run_view::RunView;

/// Reports a run that stopped without ending, usually because the user shut the runtime down.
pub(super) fn stopped(error: Error, handle: &RunHandle, run_view: RunView<'_>) -> Exit {
    let is_requested = error.code() == ErrorCode::Closed;
    let is_json = run_view.screen.is_json();
    if is_requested && !is_json {
        let command = |words| follow_up::command(words, handle.session(), run_view.db);
        notice(&match run_view.db.is_server() {
            true => format!("the run continues at the server; to follow it: {}", command("tail")),
            false => format!("stopped; to resume: {}", command("resume")),
        });
    } else {
        failure::report(&error.into(), is_json);
    }
    if is_requested { Exit::Interrupted } else { Exit::Failed }
}
