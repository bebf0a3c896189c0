//! Standard output: text with colours for people, or JSON for programs.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Display;
use std::io;

use helix_agents::error::ErrorRecord;
use serde::Serialize;

use crate::terminal::{self, Output};
use crate::text::one_line;

/// Standard output. Once nobody reads it any more, it is silent: a run does not die of a closed
/// pipe.
#[derive(Debug)]
pub(crate) struct Screen {
    json: bool,
    color: bool,
    /// Where all goes but answers.
    talk: Output,
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
        let color = !json && terminal::has_colors(Output::Out);
        Self { json, color, talk: Output::Out, closed: Cell::new(false) }
    }

    /// The same, but where standard output is a pipe or file only answers go there, and everything
    /// else to standard error.
    pub(crate) fn for_answers(&self) -> Self {
        if self.json || terminal::is_shown(Output::Out) {
            return Self::new(self.json);
        }
        let color = terminal::has_colors(Output::Err);
        Self { json: false, color, talk: Output::Err, closed: Cell::new(false) }
    }

    /// Whether answers go elsewhere than the rest.
    pub(crate) fn is_for_answers(&self) -> bool {
        self.talk == Output::Err
    }

    /// Whether it is for programs.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether nobody reads any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Writes text: as it is into a pipe or file, without control characters on a terminal.
    pub(crate) fn text(&self, text: &str) -> io::Result<()> {
        self.write(self.talk, text)
    }

    /// Writes an answer, which ends with its line.
    pub(crate) fn answer(&self, answer: impl Display) -> io::Result<()> {
        self.write(Output::Out, &format!("{answer}\n"))
    }

    fn write(&self, output: Output, text: &str) -> io::Result<()> {
        if self.closed.get() {
            return Ok(());
        }
        match terminal::write(output, text) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed.set(true);
                Ok(())
            }
            Err(error) => {
                let output = match output {
                    Output::Out => "standard output",
                    Output::Err => "standard error",
                };
                let message = format!("{output} cannot be written: {error}");
                Err(io::Error::new(error.kind(), message))
            }
            Ok(()) => Ok(()),
        }
    }

    /// Writes one line.
    pub(crate) fn line(&self, line: impl Display) -> io::Result<()> {
        self.text(&format!("{line}\n"))
    }

    /// Writes a name and what it stands for, in one line, whoever wrote that.
    pub(crate) fn field(&self, name: &str, value: impl Display) -> io::Result<()> {
        self.line(format!("{name:<8} {}", one_line(&value.to_string())))
    }

    /// Writes what a run failed of, in one line. The detail, which may repeat content, goes where answers go or a
    /// person reads along, not into a file of standard error.
    pub(crate) fn error(&self, error: &ErrorRecord) -> io::Result<()> {
        let told = if self.talk == Output::Out || terminal::is_shown(self.talk) {
            format!("{}: {}", error.code, error.in_full())
        } else {
            error.to_string()
        };
        self.line(self.styled(Style::Bad, one_line(&told)))
    }

    /// Writes one JSON value as one line.
    pub(crate) fn json<T: Serialize>(&self, value: &T) -> io::Result<()> {
        self.line(serde_json::to_string(value)?)
    }

    /// Ends a line that text has left open.
    pub(crate) fn end_line(&self) -> io::Result<()> {
        if self.closed.get() { Ok(()) } else { terminal::end_line(self.talk) }
    }

    /// What others wrote, which must not pass for our own words on a terminal.
    pub(crate) fn foreign<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if terminal::is_shown(self.talk) { terminal::plain(text).into() } else { text.into() }
    }

    /// Text that stands out, where that is possible.
    pub(crate) fn styled(&self, style: Style, text: impl Display) -> String {
        if !self.color {
            return text.to_string();
        }
        let color = match style {
            Style::Bold => terminal::BOLD,
            Style::Dim => terminal::DIM,
            Style::Good => terminal::GREEN,
            Style::Bad => terminal::RED,
        };
        format!("{color}{}{}", terminal::plain(&text.to_string()), terminal::RESET)
    }
}

/// Says something on standard error. That nobody reads it is no reason to stop.
pub(crate) fn notice(message: &str) {
    let _unread = terminal::notice(&format!("{message}\n"));
}
