//! The modes of the terminal, to be put back when somebody else is stopped in the middle.

use std::io;

use rustix::termios::{self, OptionalActions, Termios};

use super::{Output, put};

/// Ends bracketed paste.
const NO_PASTE: &str = "\u{1b}[?2004l";

/// The modes at one time.
#[derive(Debug)]
pub(crate) struct Modes(Termios);

impl Modes {
    /// The modes of standard input now, if it is a terminal.
    pub(crate) fn now() -> Option<Self> {
        termios::tcgetattr(io::stdin()).ok().map(Self)
    }

    /// Puts them back, and goes to a new line.
    pub(crate) fn restore(self) {
        // A terminal that is gone needs nothing.
        let _gone = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        let _gone = put(Output::Err, &format!("{NO_PASTE}\r\n"));
    }
}
