//! Output to the terminal, which standard output, standard error and the status line share. Every write
//! hides the status line first, and replaces control characters except the program's own colours.
//!
//! There is only one terminal, so this module has process-wide state. `NO_COLOR` disables colours, and
//! `TERM=dumb` disables colours and the status line.

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::termios;

use self::clean::clean;
use self::cursor::Cursor;

mod clean;
mod cursor;
mod modes;

pub(crate) use self::clean::{BOLD, DIM, GREEN, RED, RESET, plain};
pub use self::modes::Modes;

/// An output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The width of a terminal whose size is unknown.
const DEFAULT_WIDTH: usize = 80;

static TERMINAL: LazyLock<Mutex<Terminal>> = LazyLock::new(|| Mutex::new(Terminal::find()));

/// The state of the terminal.
#[derive(Debug)]
struct Terminal {
    out: bool,
    err: bool,
    dumb: bool,
    cursor: Cursor,
    /// Whether the last text did not end its line, if standard output is not a terminal.
    open: bool,
}

/// Returns `true` if this output is a terminal.
#[must_use]
pub fn is_terminal(output: Output) -> bool {
    terminal().is_terminal(output)
}

/// Returns `true` if this output is a terminal with colours and they are not disabled.
pub(crate) fn has_colors(output: Output) -> bool {
    terminal().has_colors(output)
}

/// Returns `true` if a status line can be shown: both outputs are terminals that can erase lines.
pub(crate) fn has_status() -> bool {
    terminal().has_status()
}

/// Writes text. On a terminal, control characters are replaced by visible symbols; a pipe or file receives
/// the text unchanged.
///
/// # Errors
/// Returns an error if writing fails.
pub fn write(output: Output, text: &str) -> io::Result<()> {
    terminal().write(output, text)
}

/// Returns `true` if the last text on standard output did not end its line.
pub(crate) fn is_line_open() -> bool {
    terminal().is_line_open()
}

/// Ends an open line on this output.
///
/// # Errors
/// Returns an error if writing fails.
pub fn end_line(output: Output) -> io::Result<()> {
    let mut terminal = terminal();
    let is_open = match output {
        Output::Err if terminal.err => terminal.cursor.is_in_line(),
        _ => terminal.is_line_open(),
    };
    if is_open { terminal.write(output, "\n") } else { Ok(()) }
}

/// Writes lines to standard error. On a terminal, an unfinished line of text is ended first. They have no
/// colours, because quoted text could imitate the program's own output.
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

/// Records that the user has typed a line, so that the cursor is at the start of the next one.
pub fn line_was_typed() {
    terminal().cursor = Cursor::default();
}

/// Shows the status line below the text, replacing the previous one.
pub(crate) fn show_status(line: &str) {
    let mut terminal = terminal();
    if terminal.has_status() {
        let style = if terminal.has_colors(Output::Err) { DIM } else { "" };
        let bytes = terminal.cursor.show(&plain(line), style, width());
        // Write errors of the status line are ignored.
        let _unseen = put(Output::Err, &bytes);
    }
}

/// Hides the status line.
pub fn hide_status() {
    let bytes = terminal().cursor.hide(width());
    if !bytes.is_empty() {
        let _unseen = put(Output::Err, &bytes);
    }
}

impl Terminal {
    fn find() -> Self {
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        Self { out, err, dumb, cursor: Cursor::default(), open: false }
    }

    fn is_terminal(&self, output: Output) -> bool {
        match output {
            Output::Out => self.out,
            Output::Err => self.err,
        }
    }

    fn has_colors(&self, output: Output) -> bool {
        self.is_terminal(output)
            && !self.dumb
            && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    fn has_status(&self) -> bool {
        self.out && self.err && !self.dumb
    }

    fn is_line_open(&self) -> bool {
        if self.out { self.cursor.is_in_line() } else { self.open }
    }

    fn write(&mut self, output: Output, text: &str) -> io::Result<()> {
        if !self.is_terminal(output) {
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
    // A panic while the lock was held left at most a partial line on the screen.
    TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn width() -> usize {
    let size = termios::tcgetwinsize(io::stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|cols| *cols > 0).unwrap_or(DEFAULT_WIDTH)
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

/// A writer to standard error for the log output. It hides the status line, too.
#[derive(Debug)]
pub struct LogOutput;

impl io::Write for LogOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        notice(&String::from_utf8_lossy(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
