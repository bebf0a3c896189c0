//! Reads one line from the keyboard. The read can be cancelled without leaving a blocked thread that
//! would consume the next line.

use std::io::{self, Stdin};
use std::time::Duration;

use anyhow::Result;
use helix_agents::terminal::output::{self, Output};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::termios::{QueueSelector, tcflush};

use crate::signals::Signals;

/// The maximum length of a line in bytes, which is the limit of a terminal.
const MAX_BYTES: usize = 4096;

/// The polling interval. A thread that blocks on the keyboard could not be cancelled and would consume
/// the line typed after the question.
const LOOK: Duration = Duration::from_millis(20);

/// The reply to a question.
#[derive(Debug)]
pub(super) enum Reply {
    Line(String),
    /// No reply: Ctrl-D, or a signal.
    Nothing,
}

/// Asks a question. Input typed before the question was shown is discarded.
pub(super) async fn read_line(question: &str, signals: &mut Signals) -> Result<Reply> {
    let keyboard = io::stdin();
    retry_on_intr(|| tcflush(&keyboard, QueueSelector::IFlush))?;
    output::write(Output::Err, question)?;
    let reply = tokio::select! {
        biased;
        _ = signals.next() => None,
        line = line(&keyboard) => line?,
    };
    match reply {
        Some(line) => {
            output::line_was_typed();
            Ok(Reply::Line(line))
        }
        None => {
            output::end_line(Output::Err)?;
            Ok(Reply::Nothing)
        }
    }
}

/// Reads the next line, which the terminal delivers as a whole. Returns `None` at the end of the input.
async fn line(keyboard: &Stdin) -> Result<Option<String>> {
    while !is_there(keyboard)? {
        tokio::time::sleep(LOOK).await;
    }
    let mut bytes = vec![0; MAX_BYTES];
    let read = retry_on_intr(|| rustix::io::read(keyboard, &mut bytes[..]))?;
    bytes.truncate(read);
    Ok((read > 0).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns `true` if a line is available, so that reading it does not block.
fn is_there(keyboard: &Stdin) -> Result<bool> {
    let now = Timespec::try_from(Duration::ZERO)?;
    let mut wanted = [PollFd::new(keyboard, PollFlags::IN)];
    // The signals that cancel a question interrupt system calls as well.
    Ok(retry_on_intr(|| poll(&mut wanted, Some(&now)))? > 0)
}
