//! Where entries come from, and what else can happen while the chat waits for one.

use std::io::{self, BufReader, IsTerminal as _, Stdin};

use anyhow::Result;
use futures_util::FutureExt as _;
use helix_agents::error::Error;
use tokio::task::spawn_blocking;

use super::editor::{LineEditor, PROMPT, Typed};
use super::{HINT, plain};
use crate::screen::notice;
use crate::signals::{Signal, Signals};
use crate::terminal::{self, Modes, Output};

/// What happened.
#[derive(Debug)]
pub(super) enum Happened {
    /// Somebody typed, or a line came out of the pipe.
    Entry(String),
    /// A line came that is no entry, and why.
    Unusable(anyhow::Error),
    /// Ctrl-C where a person types.
    Cleared,
    /// There is no more.
    End,
    /// A request to end the program.
    Stop,
}

/// Standard input.
pub(super) struct Input {
    /// Away only while it reads.
    source: Option<Source>,
    signals: Signals,
    is_terminal: bool,
    modes: Option<Modes>,
}

enum Source {
    Editor(Box<LineEditor>),
    Plain(BufReader<Stdin>),
}

impl Input {
    /// Standard input: with an editor if it is a terminal and `json` is not wanted.
    pub(super) fn open(json: bool) -> Result<Self> {
        let is_terminal = io::stdin().is_terminal() && !json;
        let (source, modes) = if is_terminal {
            (Source::Editor(Box::new(LineEditor::new()?)), Modes::now())
        } else {
            (Source::Plain(BufReader::new(io::stdin())), None)
        };
        Ok(Self { source: Some(source), signals: Signals::listen()?, is_terminal, modes })
    }

    /// Whether a person types.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// The signals that arrive while nothing runs.
    pub(super) fn signals(&mut self) -> &mut Signals {
        &mut self.signals
    }

    /// Waits for the next entry.
    pub(super) async fn next(&mut self) -> Result<Happened> {
        // A person's Ctrl-C was for the run that has just ended. Everything else is for the program.
        while let Some(signal) = self.signals.next().now_or_never() {
            if signal == Signal::Terminate || !self.is_terminal {
                return Ok(Happened::Stop);
            }
        }
        let Some(source) = self.source.take() else { return Ok(Happened::End) };
        // A thread that waits for a person is left behind when the program ends.
        let mut reading = spawn_blocking(move || source.read());
        loop {
            tokio::select! {
                biased;
                signal = self.signals.next() => match signal {
                    // Only where the terminal has no editor, which takes the key itself.
                    Signal::Interrupt if self.is_terminal => {
                        notice(&format!("\n{HINT}"));
                        terminal::write(Output::Out, PROMPT)?;
                    }
                    _ => {
                        self.restore();
                        return Ok(Happened::Stop);
                    }
                },
                read = &mut reading => {
                    let (source, happened) = read?;
                    self.source = Some(source);
                    if self.is_terminal {
                        terminal::line_was_typed();
                    }
                    return happened;
                }
            }
        }
    }

    /// Undoes what the editor, which is in the middle of a line, has done to the terminal.
    fn restore(&mut self) {
        if let Some(modes) = self.modes.take() {
            modes.restore();
        }
    }
}

impl Source {
    fn read(mut self) -> (Self, Result<Happened>) {
        let happened = match &mut self {
            Self::Editor(editor) => match editor.read() {
                Ok(Typed::Entry(entry)) => Ok(Happened::Entry(entry)),
                Ok(Typed::Cleared) => Ok(Happened::Cleared),
                Ok(Typed::End) => Ok(Happened::End),
                Err(error) => Err(error.into()),
            },
            Self::Plain(input) => match plain::read(input) {
                Ok(entry) => Ok(entry.map_or(Happened::End, Happened::Entry)),
                Err(error) if error.is::<Error>() => Ok(Happened::Unusable(error)),
                Err(error) => Err(error),
            },
        };
        (self, happened)
    }
}
