//! Entries of the user: a message, or a slash command of the chat.

use std::fmt::Write as _;

use helix_agents::agent_file::similar_name::near;
use serde_json::{Value, json};

/// A parsed entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// Only white space.
    Blank,
    /// A message for the agent.
    Message(String),
    /// A command of the chat, with its argument.
    Command(Command, Option<String>),
    /// An invalid command, with an error message.
    Unknown(String),
}

/// A slash command of the chat.
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

/// A command, its name, its argument and its help text.
struct Described(Command, &'static str, &'static str, &'static str);

const COMMANDS: [Described; 8] = [
    Described(Command::Help, "/help", "", "shows this help"),
    Described(
        Command::Resume,
        "/resume",
        "[SESSION]",
        "resumes the last turn of this or another session",
    ),
    Described(Command::Log, "/log", "", "shows the session's log, event by event"),
    Described(Command::Sessions, "/sessions", "", "lists sessions, newest first"),
    Described(Command::State, "/state", "", "shows the session's custom state"),
    Described(Command::Model, "/model", "[MODEL]", "shows or changes the model"),
    Described(Command::New, "/new", "", "starts a new session with the next message"),
    Described(Command::Quit, "/quit", "", "leaves, like Ctrl-D; the session is saved"),
];

/// An alias of `/quit`.
const EXIT: &str = "/exit";

impl Entry {
    /// Parses an entry.
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
                Self::Unknown(format!("{name} takes no argument"))
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
        Some(near) => format!("unknown command {name}; did you mean {near}?"),
        None => format!(
            "unknown command {name}; /help lists the commands, and // starts a message with a /"
        ),
    }
}

/// The commands that start with the typed text.
pub(super) fn completions(typed: &str) -> Vec<&'static str> {
    COMMANDS.iter().map(|described| described.1).filter(|name| name.starts_with(typed)).collect()
}

/// The output of `/help` in JSON mode.
pub(super) fn help_as_json() -> Value {
    let commands: Vec<_> = COMMANDS
        .iter()
        .map(|Described(_, name, argument, does)| {
            json!({ "name": name, "argument": argument, "does": does })
        })
        .collect();
    json!({ "commands": commands })
}

/// The output of `/help`.
pub(super) fn help() -> String {
    let mut help = String::new();
    for Described(_, name, argument, does) in &COMMANDS {
        let usage = format!("{name} {argument}");
        // Writing to a string cannot fail.
        let _written = writeln!(help, "{usage:<18} {does}");
    }
    help.push_str(
        "Everything else is a message. A \\ at the end of a line continues it on the next line.\n\
         Ctrl-C interrupts the agent at the end of its step, a second one aborts it.",
    );
    help
}

#[cfg(test)]
mod tests;
