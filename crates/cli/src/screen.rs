//! Standard output: text with colours for people, or JSON for programs.

use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::env;

/// Standard output. Once nobody reads it any more, it is silent: a run does not die of a closed
/// pipe.
#[derive(Debug)]
pub(crate) struct Screen {
    json: bool,
    color: bool,
    closed: Cell<bool>,
}

/// How text stands out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    /// Headings.
    Bold,
    /// What matters less.
    Dim,
    /// What went well.
    Good,
    /// What went wrong.
    Bad,
}

impl Screen {
    /// Standard output, for programs if `json`.
    pub(crate) fn new(json: bool) -> Self {
        let dumb = env::TERM.text().is_some_and(|term| term == "dumb");
        let plain = env::NO_COLOR.get().is_some() || dumb;
        let color = !json && !plain && io::stdout().is_terminal();
        Self { json, color, closed: Cell::new(false) }
    }

    /// Whether it is for programs.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether nobody reads any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Writes text as it is.
    pub(crate) fn text(&self, text: &str) -> io::Result<()> {
        if self.closed.get() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed.set(true);
                Ok(())
            }
            result => result,
        }
    }

    /// Writes one line.
    pub(crate) fn line(&self, line: impl Display) -> io::Result<()> {
        self.text(&format!("{line}\n"))
    }

    /// Writes one JSON value as one line.
    pub(crate) fn json<T: Serialize>(&self, value: &T) -> io::Result<()> {
        self.line(serde_json::to_string(value)?)
    }

    /// Text that stands out, where that is possible.
    pub(crate) fn styled(&self, style: Style, text: impl Display) -> String {
        if !self.color {
            return text.to_string();
        }
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Good => "32",
            Style::Bad => "31",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Says something on standard error. That nobody reads it is no reason to stop.
pub(crate) fn notice(message: &str) {
    let mut out = io::stderr().lock();
    let _unread = writeln!(out, "{message}");
}
