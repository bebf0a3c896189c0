//! The input of the chat: entries from standard input, and signals.

use std::io::{self, BufReader, IsTerminal as _, Stdin};

use anyhow::Result;
use futures_util::FutureExt as _;
use helix_agents::error::Error;
use helix_agents::terminal::notice;
use helix_agents::terminal::output::{self, Modes, Output};
use tokio::task::spawn_blocking;

use super::editor::{LineEditor, PROMPT, Typed};
use super::plain;
use crate::signals::{Signal, Signals};

/// The hint shown after Ctrl-C.
pub(super) const HINT: &str = "use Ctrl-D or /quit to leave";

/// An event while the chat waits for an entry.
#[derive(Debug)]
pub(super) enum InputEvent {
    /// An entry from the terminal or from a pipe.
    Entry(String),
    /// A line that is not a valid entry, with the error.
    Unusable(anyhow::Error),
    /// Ctrl-C at the terminal.
    Cleared,
    /// The end of the input.
    End,
    /// A signal to end the program.
    Stop,
}

/// The entries and signals of the chat.
pub(super) struct Input {
    /// The source of entries. It is `None` while a read is in progress.
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
    /// Opens standard input, with a line editor if it is a terminal and `json` is not set.
    pub(super) fn open(json: bool) -> Result<Self> {
        let is_terminal = io::stdin().is_terminal() && !json;
        let (source, modes) = if is_terminal {
            (Source::Editor(Box::new(LineEditor::new()?)), Modes::now())
        } else {
            (Source::Plain(BufReader::new(io::stdin())), None)
        };
        Ok(Self { source: Some(source), signals: Signals::listen()?, is_terminal, modes })
    }

    /// Returns `true` if the input is an interactive terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// The signals that arrive while no run is active.
    pub(super) fn signals(&mut self) -> &mut Signals {
        &mut self.signals
    }

    /// Waits for the next entry.
    pub(super) async fn next(&mut self) -> Result<InputEvent> {
        // A Ctrl-C at the terminal was for the run that has just ended. Other signals end the program.
        while let Some(signal) = self.signals.next().now_or_never() {
            if signal == Signal::Terminate || !self.is_terminal {
                return Ok(InputEvent::Stop);
            }
        }
        let Some(source) = self.source.take() else { return Ok(InputEvent::End) };
        // A thread that blocks on input is abandoned when the program ends.
        let mut reading = spawn_blocking(move || source.read());
        loop {
            tokio::select! {
                biased;
                signal = self.signals.next() => match signal {
                    // Happens only without line editing; the editor handles the key itself.
                    Signal::Interrupt if self.is_terminal => {
                        notice(&format!("\n{HINT}"));
                        output::write(Output::Out, PROMPT)?;
                    }
                    _ => {
                        self.restore();
                        return Ok(InputEvent::Stop);
                    }
                },
                read = &mut reading => {
                    let (source, event) = read?;
                    self.source = Some(source);
                    if self.is_terminal {
                        output::line_was_typed();
                    }
                    return event;
                }
            }
        }
    }

    /// Restores the terminal modes that an active line editor has changed.
    fn restore(&mut self) {
        if let Some(modes) = self.modes.take() {
            modes.restore();
        }
    }
}

impl Source {
    fn read(mut self) -> (Self, Result<InputEvent>) {
        let event = match &mut self {
            Self::Editor(editor) => match editor.read() {
                Ok(Typed::Entry(entry)) => Ok(InputEvent::Entry(entry)),
                Ok(Typed::Cleared) => Ok(InputEvent::Cleared),
                Ok(Typed::End) => Ok(InputEvent::End),
                Err(error) => Err(error.into()),
            },
            Self::Plain(input) => match plain::read(input) {
                Ok(entry) => Ok(entry.map_or(InputEvent::End, InputEvent::Entry)),
                Err(error) if error.is::<Error>() => Ok(InputEvent::Unusable(error)),
                Err(error) => Err(error),
            },
        };
        (self, event)
    }
}
