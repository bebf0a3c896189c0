//! The terminal, which standard output, standard error and the status line share: whoever writes
//! takes the status line away first, and nothing but text and our own colours gets through.
//!
//! There is one terminal, so this is the one place of the binary with state for the whole process.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::termios;

use self::clean::clean;
use self::cursor::Cursor;
use crate::env;

mod clean;
mod cursor;
mod modes;

pub(crate) use self::clean::{BOLD, DIM, GREEN, RED, RESET, plain};
pub(crate) use self::modes::Modes;

/// Where text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// How wide a terminal is that does not say so.
const USUAL_WIDTH: usize = 80;

static TERMINAL: LazyLock<Mutex<Terminal>> = LazyLock::new(|| Mutex::new(Terminal::find()));

/// What is known of it.
#[derive(Debug)]
struct Terminal {
    out: bool,
    err: bool,
    dumb: bool,
    cursor: Cursor,
    /// Whether the last text did not end its line, where standard output is no terminal.
    open: bool,
}

/// Whether this output is a terminal.
pub(crate) fn is_shown(output: Output) -> bool {
    terminal().is_shown(output)
}

/// Whether this output is a terminal that has colours, and a person who wants them.
pub(crate) fn has_colors(output: Output) -> bool {
    terminal().has_colors(output)
}

/// Whether a status line can be shown: both outputs are on a terminal, and it can erase.
pub(crate) fn has_status() -> bool {
    terminal().has_status()
}

/// Writes text: as it is into a pipe or file, without control characters on a terminal.
pub(crate) fn write(output: Output, text: &str) -> io::Result<()> {
    terminal().write(output, text)
}

/// Whether text on standard output has left its line open.
pub(crate) fn is_line_open() -> bool {
    terminal().is_line_open()
}

/// Ends a line that text has left open on this output.
pub(crate) fn end_line(output: Output) -> io::Result<()> {
    let mut terminal = terminal();
    let is_open = match output {
        Output::Err if terminal.err => terminal.cursor.is_in_line(),
        _ => terminal.is_line_open(),
    };
    if is_open { terminal.write(output, "\n") } else { Ok(()) }
}

/// Writes lines to standard error, on a terminal never in the middle of a line of text. They have
/// no colours: what they quote could pass for our own words.
pub(crate) fn notice(lines: &str) -> io::Result<()> {
    let mut terminal = terminal();
    if !terminal.err {
        return terminal.write(Output::Err, lines);
    }
    if terminal.cursor.is_in_line() {
        terminal.write(Output::Err, "\n")?;
    }
    terminal.write(Output::Err, &plain(lines))
}

/// Says that a person has typed a line, so that the next one begins.
pub(crate) fn line_was_typed() {
    terminal().cursor = Cursor::default();
}

/// Shows this line below the text, instead of the one before.
pub(crate) fn show_status(line: &str) {
    let mut terminal = terminal();
    if terminal.has_status() {
        let style = if terminal.has_colors(Output::Err) { DIM } else { "" };
        let bytes = terminal.cursor.show(&plain(line), style, width());
        // Nobody misses a status line.
        let _unseen = put(Output::Err, &bytes);
    }
}

/// Takes the status line away.
pub(crate) fn hide_status() {
    let bytes = terminal().cursor.hide(width());
    if !bytes.is_empty() {
        let _unseen = put(Output::Err, &bytes);
    }
}

impl Terminal {
    fn find() -> Self {
        let dumb = env::TERM.text().is_some_and(|term| term == "dumb");
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        Self { out, err, dumb, cursor: Cursor::default(), open: false }
    }

    fn is_shown(&self, output: Output) -> bool {
        match output {
            Output::Out => self.out,
            Output::Err => self.err,
        }
    }

    fn has_colors(&self, output: Output) -> bool {
        self.is_shown(output) && !self.dumb && env::NO_COLOR.get().is_none()
    }

    fn has_status(&self) -> bool {
        self.out && self.err && !self.dumb
    }

    fn is_line_open(&self) -> bool {
        if self.out { self.cursor.is_in_line() } else { self.open }
    }

    fn write(&mut self, output: Output, text: &str) -> io::Result<()> {
        if !self.is_shown(output) {
            if !text.is_empty() {
                self.open = !text.ends_with('\n');
            }
            return put(output, text);
        }
        let width = width();
        let text = clean(text, self.has_colors(output));
        let mut bytes = self.cursor.hide(width);
        self.cursor.advance(&text, width);
        bytes.push_str(&text);
        put(output, &bytes)
    }
}

fn terminal() -> MutexGuard<'static, Terminal> {
    // Whoever panicked with it in hand left at most a line on the screen.
    TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn width() -> usize {
    let size = termios::tcgetwinsize(io::stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|cols| *cols > 0).unwrap_or(USUAL_WIDTH)
}

fn put(output: Output, text: &str) -> io::Result<()> {
    match output {
        Output::Out => {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()
        }
        Output::Err => io::stderr().lock().write_all(text.as_bytes()),
    }
}

/// Standard error for the log output: a line of it takes the status line away too.
#[derive(Debug)]
pub(crate) struct LogOutput;

impl io::Write for LogOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        notice(&String::from_utf8_lossy(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
