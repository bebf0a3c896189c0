//! The tool `note`: notes in the session's custom state, which the system prompt shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use helix_agents_core::tool::{EffectClass, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const DESCRIPTION: &str = "\
Keep a note for the rest of this session. The system prompt shows your notes, no matter how long the \
conversation becomes. Writing a note with an existing title replaces it.";

/// The default of [`NoteTool::max_notes`].
pub const DEFAULT_MAX_NOTES: usize = 20;
/// The default of [`NoteTool::max_chars`].
pub const DEFAULT_MAX_CHARS: usize = 1000;

/// The tool `note`: notes that stay in the system prompt for the whole session.
///
/// # Examples
///
/// ```
/// use helix_agents_core::agent::Agent;
/// use helix_agents_tools::note::{NoteTool, Notes};
///
/// # fn main() -> Result<(), helix_agents_core::error::Error> {
/// let agent = Agent::builder("secretary")
///     .state::<Notes>()
///     .system_prompt_of(|notes: Notes| notes.shown_in("You are a secretary."))
///     .tool(NoteTool::new().max_notes(5).tool())
///     .build()?;
/// # assert!(agent.definition().tool("note").is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct NoteTool {
    max_notes: usize,
    max_chars: usize,
}

impl Default for NoteTool {
    fn default() -> Self {
        Self { max_notes: DEFAULT_MAX_NOTES, max_chars: DEFAULT_MAX_CHARS }
    }
}

/// The custom state of an agent that keeps notes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Option<RecordedNotes>")]
pub struct Notes {
    notes: BTreeMap<String, String>,
}

/// The recorded state. It is null in a session that was started without the tool.
#[derive(Deserialize, JsonSchema)]
struct RecordedNotes {
    #[serde(default)]
    notes: BTreeMap<String, String>,
}

impl From<Option<RecordedNotes>> for Notes {
    fn from(kept: Option<RecordedNotes>) -> Self {
        Self { notes: kept.map(|kept| kept.notes).unwrap_or_default() }
    }
}

impl Notes {
    /// Appends the notes to a system prompt.
    #[must_use]
    pub fn shown_in(&self, prompt: &str) -> String {
        let mut shown = prompt.to_owned();
        if self.notes.is_empty() {
            return shown;
        }
        shown.push_str("\n\nYour notes from this session:");
        for (title, text) in &self.notes {
            // Continuation lines are indented, so that a note cannot imitate a title.
            let text = text.replace('\n', "\n  ");
            // Writing to a string does not fail.
            let _done = write!(shown, "\n- {title}: {text}");
        }
        shown
    }
}

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct Change {
    /// Whether to write or remove the note.
    action: Action,
    /// The note's title, a few words in one line.
    #[schemars(length(min = 1, max = 80))]
    title: String,
    /// The text of the note; required to write one.
    #[serde(default)]
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Action {
    Write,
    Remove,
}

/// The output of the tool.
#[derive(Debug, PartialEq, Serialize)]
struct Noted {
    /// The titles of all notes after the change.
    titles: Vec<String>,
}

impl NoteTool {
    /// Creates the builder of the tool, with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of notes. Default: 20.
    #[must_use]
    pub fn max_notes(mut self, most: usize) -> Self {
        self.max_notes = most;
        self
    }

    /// Sets the maximum length of a note in characters. Default: 1000.
    #[must_use]
    pub fn max_chars(mut self, most: usize) -> Self {
        self.max_chars = most;
        self
    }

    /// Creates the tool. The agent must have [`Notes`] as its state.
    #[must_use]
    pub fn tool(self) -> Tool {
        let run = move |change: Change, cx: ToolContext| async move {
            let mut noted = Err(ToolError::new("the state was not updated"));
            cx.update_state(|notes: &mut Notes| noted = self.apply(&change, notes))?;
            noted
        };
        Tool::function("note", DESCRIPTION, run).effect(EffectClass::Idempotent)
    }

    fn apply(self, change: &Change, notes: &mut Notes) -> Result<Noted, ToolError> {
        let notes = &mut notes.notes;
        let title = change.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let titles = |notes: &BTreeMap<_, _>| notes.keys().cloned().collect::<Vec<String>>();
        if title.is_empty() {
            return Err(ToolError::new("the title is empty; use a few words"));
        }
        if change.action == Action::Remove {
            if notes.remove(&title).is_none() {
                let titles = titles(notes).join(", ");
                let message = format!("there is no note `{title}`; the notes are: [{titles}]");
                return Err(ToolError::new(message));
            }
            return Ok(Noted { titles: titles(notes) });
        }
        let text = change.text.trim();
        if text.is_empty() {
            return Err(ToolError::new("`text` is empty; write the note, or use `remove`"));
        }
        let length = text.chars().count();
        if length > self.max_chars {
            let Self { max_chars, .. } = self;
            let message = format!("the note has {length} characters; shorten it to {max_chars}");
            return Err(ToolError::new(message));
        }
        if !notes.contains_key(&title) && notes.len() >= self.max_notes {
            let message = format!(
                "there are {} notes already; remove or replace one of: {}",
                notes.len(),
                titles(notes).join(", ")
            );
            return Err(ToolError::new(message));
        }
        notes.insert(title, text.to_owned());
        Ok(Noted { titles: titles(notes) })
    }
}

#[cfg(test)]
mod tests;
