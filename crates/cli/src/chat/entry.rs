//! What a person types: a message, or a command to the chat itself.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::suggest::near;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// Nothing but space.
    Blank,
    /// For the agent.
    Message(String),
    /// For the chat, with what stands behind it.
    Command(Command, Option<String>),
    /// Begins like a command, and is none; says what could be meant.
    Unknown(String),
}

/// A command to the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Resume,
    Log,
    Sessions,
    State,
    Model,
    New,
    Quit,
}

/// A command's name, what may stand behind it, and what it does.
struct Described(Command, &'static str, &'static str, &'static str);

const COMMANDS: [Described; 8] = [
    Described(Command::Help, "/help", "", "shows this"),
    Described(
        Command::Resume,
        "/resume",
        "[SESSION]",
        "goes on with what was interrupted, failed or killed, here or in another session",
    ),
    Described(Command::Log, "/log", "", "shows what the session recorded, event by event"),
    Described(Command::Sessions, "/sessions", "", "lists the sessions, the newest first"),
    Described(Command::State, "/state", "", "shows the session's custom state"),
    Described(Command::Model, "/model", "[MODEL]", "shows the model, or chooses another one"),
    Described(Command::New, "/new", "", "begins a new session with the next message"),
    Described(Command::Quit, "/quit", "", "leaves, and so does Ctrl-D; the session is kept"),
];

/// Another name of `/quit`.
const EXIT: &str = "/exit";

impl Entry {
    /// Reads what was typed.
    pub(super) fn of(typed: &str) -> Self {
        let typed = typed.trim();
        if typed.is_empty() {
            return Self::Blank;
        }
        if let Some(message) = typed.strip_prefix('/').filter(|rest| rest.starts_with('/')) {
            return Self::Message(message.to_owned());
        }
        if !typed.starts_with('/') || typed.contains('\n') {
            return Self::Message(typed.to_owned());
        }
        let (name, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        let name = if name == EXIT { "/quit" } else { name };
        let rest = rest.trim();
        match COMMANDS.iter().find(|described| described.1 == name) {
            Some(Described(_, _, "", _)) if !rest.is_empty() => {
                Self::Unknown(format!("{name} takes nothing behind it"))
            }
            Some(Described(command, ..)) => {
                Self::Command(*command, (!rest.is_empty()).then(|| rest.to_owned()))
            }
            None => Self::Unknown(unknown(name)),
        }
    }
}

fn unknown(name: &str) -> String {
    match near(name, COMMANDS.iter().map(|described| described.1)) {
        Some(near) => format!("there is no command {name}; did you mean {near}?"),
        None => format!(
            "there is no command {name}; /help lists them, and // begins a message with a /"
        ),
    }
}

/// The commands that begin like this.
pub(super) fn completions(typed: &str) -> Vec<&'static str> {
    COMMANDS.iter().map(|described| described.1).filter(|name| name.starts_with(typed)).collect()
}

/// What `/help` tells programs.
pub(super) fn help_as_json() -> Value {
    let commands: Vec<_> = COMMANDS
        .iter()
        .map(|Described(_, name, argument, does)| {
            json!({ "name": name, "argument": argument, "does": does })
        })
        .collect();
    json!({ "commands": commands })
}

/// What `/help` shows.
pub(super) fn help() -> String {
    let mut help = String::new();
    for Described(_, name, argument, does) in &COMMANDS {
        let usage = format!("{name} {argument}");
        // Writing to a string cannot fail.
        let _written = writeln!(help, "{usage:<18} {does}");
    }
    help.push_str(
        "Everything else is a message. A \\ at the end of a line goes on in the next one.\n\
         Ctrl-C interrupts the agent at the end of its step, a second one aborts it.",
    );
    help
}

#[cfg(test)]
mod tests;
