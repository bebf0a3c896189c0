//! One line from the keyboard, which can be given up without leaving somebody behind who reads the
//! next one.

use std::io::{self, Stdin};
use std::time::Duration;

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::signals::Signals;
use crate::terminal::{self, Output};

/// The most bytes of a line; a terminal holds no more.
const MOST_BYTES: usize = 4096;

/// What was said to a question.
#[derive(Debug)]
pub(super) enum Said {
    Line(String),
    /// Ctrl-D, or a signal.
    Nothing,
}

/// Asks a question. What was typed before it could be read is no answer to it.
pub(super) async fn read_line(question: &str, signals: &mut Signals) -> Result<Said> {
    let keyboard = AsyncFd::with_interest(io::stdin(), Interest::READABLE)?;
    tcflush(keyboard.get_ref(), QueueSelector::IFlush)?;
    terminal::write(Output::Err, question)?;
    let said = tokio::select! {
        biased;
        _ = signals.next() => None,
        line = line(&keyboard) => line?,
    };
    match said {
        Some(line) => {
            terminal::line_was_typed();
            Ok(Said::Line(line))
        }
        None => {
            terminal::end_line(Output::Err)?;
            Ok(Said::Nothing)
        }
    }
}

/// The next line, which the terminal hands out as a whole. None at the end.
async fn line(keyboard: &AsyncFd<Stdin>) -> Result<Option<String>> {
    loop {
        let mut ready = keyboard.readable().await?;
        if !is_there(keyboard.get_ref())? {
            ready.clear_ready();
            continue;
        }
        let mut bytes = vec![0; MOST_BYTES];
        let read = rustix::io::read(keyboard.get_ref(), &mut bytes[..])?;
        bytes.truncate(read);
        return Ok((read > 0).then(|| String::from_utf8_lossy(&bytes).into_owned()));
    }
}

/// Whether a line is there, so that reading it does not hold everybody up.
fn is_there(keyboard: &Stdin) -> Result<bool> {
    let now = Timespec::try_from(Duration::ZERO)?;
    let mut wanted = [PollFd::new(keyboard, PollFlags::IN)];
    Ok(poll(&mut wanted, Some(&now))? > 0)
}
