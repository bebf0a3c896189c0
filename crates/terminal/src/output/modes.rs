//! Saves and restores the modes of the terminal, for when the line editor is stopped in the middle.

use std::io;

use rustix::termios::{self, OptionalActions, Termios};

use super::{Output, put};

/// The escape sequence that ends bracketed paste.
const NO_PASTE: &str = "\u{1b}[?2004l";

/// The saved modes.
#[derive(Debug)]
pub struct Modes(Termios);

impl Modes {
    /// Returns the current modes of standard input, if it is a terminal.
    #[must_use]
    pub fn now() -> Option<Self> {
        termios::tcgetattr(io::stdin()).ok().map(Self)
    }

    /// Restores the modes and starts a new line.
    pub fn restore(self) {
        // Errors are ignored: the terminal may be closed.
        let _gone = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        let _gone = put(Output::Err, &format!("{NO_PASTE}\r\n"));
    }
}
