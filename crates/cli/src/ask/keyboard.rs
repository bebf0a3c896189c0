//! One line from the keyboard, which can be given up without leaving somebody behind who reads the
//! next one.

use std::io::{self, Stdin};
use std::time::Duration;

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

use crate::signals::Signals;
use crate::terminal::{self, Output};

/// The most bytes of a line; a terminal holds no more.
const MOST_BYTES: usize = 4096;

/// How often the keyboard is looked at. A thread that waits for it could not be called back, and
/// would take the line that comes after the question.
const LOOK: Duration = Duration::from_millis(20);

/// What was said to a question.
#[derive(Debug)]
pub(super) enum Said {
    Line(String),
    /// Ctrl-D, or a signal.
    Nothing,
}

/// Asks a question. What was typed before it could be read is no answer to it.
pub(super) async fn read_line(question: &str, signals: &mut Signals) -> Result<Said> {
    let keyboard = io::stdin();
    tcflush(&keyboard, QueueSelector::IFlush)?;
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
async fn line(keyboard: &Stdin) -> Result<Option<String>> {
    while !is_there(keyboard)? {
        tokio::time::sleep(LOOK).await;
    }
    let mut bytes = vec![0; MOST_BYTES];
    let read = rustix::io::read(keyboard, &mut bytes[..])?;
    bytes.truncate(read);
    Ok((read > 0).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Whether a line is there, so that reading it does not hold everybody up.
fn is_there(keyboard: &Stdin) -> Result<bool> {
    let now = Timespec::try_from(Duration::ZERO)?;
    let mut wanted = [PollFd::new(keyboard, PollFlags::IN)];
    Ok(poll(&mut wanted, Some(&now))? > 0)
}
