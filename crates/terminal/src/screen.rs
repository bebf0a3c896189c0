//! A program's output: text with colours for users, or JSON for programs.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Display;
use std::io;

use helix_agents_core::error::ErrorRecord;
use serde::Serialize;

use crate::output::{self, Output};
use helix_agents_tools::text::one_line;

/// The output of a program: text or JSON. Answers go to standard output; other text goes to standard output
/// or, with [`for_answers`](Self::for_answers), to standard error. After a broken pipe, further output is
/// discarded, so that a closed pipe does not stop a run.
#[derive(Debug)]
pub struct Screen {
    json: bool,
    color: bool,
    /// The output for everything but answers.
    other: Output,
    closed: Cell<bool>,
}

/// A text style.
#[derive(Debug, Clone, Copy)]
pub enum Style {
    /// The style of headings.
    Bold,
    /// Less important text.
    Dim,
    /// The style of success messages.
    Good,
    /// The style of failure messages.
    Bad,
}

impl Screen {
    /// Creates a screen on standard output, in JSON mode if `json`.
    #[must_use]
    pub fn new(json: bool) -> Self {
        let color = !json && output::has_colors(Output::Out);
        Self { json, color, other: Output::Out, closed: Cell::new(false) }
    }

    /// Returns a screen that writes only answers to standard output and everything else to standard error, if
    /// standard output is a pipe or a file.
    #[must_use]
    pub fn for_answers(&self) -> Self {
        if self.json || output::is_terminal(Output::Out) {
            return Self::new(self.json);
        }
        let color = output::has_colors(Output::Err);
        Self { json: false, color, other: Output::Err, closed: Cell::new(false) }
    }

    /// Returns `true` if answers and other text have different outputs.
    #[must_use]
    pub fn is_for_answers(&self) -> bool {
        self.other == Output::Err
    }

    /// Returns `true` in JSON mode.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Returns `true` if the reader of a pipe has closed it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Writes text. On a terminal, control characters are replaced by visible symbols; a pipe or file
    /// receives the text unchanged.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn text(&self, text: &str) -> io::Result<()> {
        self.write(self.other, text)
    }

    /// Writes an answer and a line break.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn answer(&self, answer: impl Display) -> io::Result<()> {
        self.write(Output::Out, &format!("{answer}\n"))
    }

    fn write(&self, output: Output, text: &str) -> io::Result<()> {
        if self.closed.get() {
            return Ok(());
        }
        match output::write(output, text) {
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
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn line(&self, line: impl Display) -> io::Result<()> {
        self.text(&format!("{line}\n"))
    }

    /// Writes a name and its value, escaped to one line.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn field(&self, name: &str, value: impl Display) -> io::Result<()> {
        self.line(format!("{name:<8} {}", one_line(&value.to_string())))
    }

    /// Writes the error of a run in one line. The details may repeat content, so they are written only to
    /// standard output or to a terminal, not to a redirected standard error.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn error(&self, error: &ErrorRecord) -> io::Result<()> {
        let text = if self.other == Output::Out || output::is_terminal(self.other) {
            format!("{}: {}", error.code, error.in_full())
        } else {
            error.to_string()
        };
        self.line(self.styled(Style::Bad, one_line(&text)))
    }

    /// Writes a message of the program itself, as opposed to the agent's output. Does nothing in JSON mode.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn note(&self, line: &str) -> io::Result<()> {
        if self.json { Ok(()) } else { self.line(self.styled(Style::Dim, line)) }
    }

    /// Writes one JSON value as one line.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn json<T: Serialize>(&self, value: &T) -> io::Result<()> {
        self.line(serde_json::to_string(value)?)
    }

    /// Ends an open line of text.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn end_line(&self) -> io::Result<()> {
        if self.closed.get() { Ok(()) } else { output::end_line(self.other) }
    }

    /// Escapes untrusted text for a terminal, so that it cannot imitate the program's own output.
    #[must_use]
    pub fn untrusted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if output::is_terminal(self.other) { output::plain(text).into() } else { text.into() }
    }

    /// Applies a style to text, if colours are enabled.
    #[must_use]
    pub fn styled(&self, style: Style, text: impl Display) -> String {
        if !self.color {
            return text.to_string();
        }
        let color = match style {
            Style::Bold => output::BOLD,
            Style::Dim => output::DIM,
            Style::Good => output::GREEN,
            Style::Bad => output::RED,
        };
        format!("{color}{}{}", output::plain(&text.to_string()), output::RESET)
    }
}

/// Writes a message to standard error. Write errors are ignored.
pub fn notice(message: &str) {
    let _unread = output::notice(&format!("{message}\n"));
}
