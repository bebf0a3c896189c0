//! Reads entries from a terminal, with line editing, history and completion.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustyline::completion::Completer;
use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Behavior, Config, Context, Editor, Helper};

use super::entry::completions;
use super::plain::{is_continued, joined};
use crate::env;

/// The prompt of the line editor.
pub(super) const PROMPT: &str = "> ";

/// The maximum number of entries in the history.
const KEPT: usize = 1000;

/// The maximum length in bytes of an entry in the history.
const LONGEST: usize = 16 * 1024;

/// The result of reading a line.
#[derive(Debug)]
pub(super) enum Typed {
    Entry(String),
    /// The user pressed Ctrl-C.
    Cleared,
    /// The user pressed Ctrl-D.
    End,
}

/// A line editor and its history file.
pub(super) struct LineEditor {
    editor: Editor<Assist, FileHistory>,
    history: Option<PathBuf>,
}

impl LineEditor {
    /// Creates the editor. It works without a history if the history file is unavailable.
    pub(super) fn new() -> rustyline::Result<Self> {
        let config = Config::builder()
            .max_history_size(KEPT)?
            .history_ignore_dups(true)?
            .history_ignore_space(true)
            // Makes `helix chat | tee` interactive, too.
            .behavior(Behavior::PreferTerm)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assist));
        editor.set_auto_add_history(false);
        let history = history_file();
        if let Some(file) = &history
            && file.exists()
            && let Err(error) = editor.load_history(file)
        {
            tracing::warn!(file = %file.display(), %error, "the history cannot be read");
        }
        Ok(Self { editor, history })
    }

    /// Reads the next entry.
    pub(super) fn read(&mut self) -> rustyline::Result<Typed> {
        match self.editor.readline(PROMPT) {
            Ok(line) => {
                self.keep(&line);
                Ok(Typed::Entry(joined(&line)))
            }
            Err(ReadlineError::Interrupted) => Ok(Typed::Cleared),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(error),
        }
    }

    fn keep(&mut self, line: &str) {
        if line.trim().is_empty() || line.len() > LONGEST {
            return;
        }
        let is_new = self.editor.add_history_entry(line).unwrap_or(false);
        let Some(file) = self.history.as_deref().filter(|_| is_new) else { return };
        let kept = make_folder(file).map_err(Into::into);
        if let Err(error) = kept.and_then(|()| self.editor.append_history(file)) {
            tracing::warn!(file = %file.display(), %error, "the history cannot be written");
            self.history = None;
        }
    }
}

/// The path of the history file: `$XDG_STATE_HOME/helix/history`, by default below `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let folder = env::XDG_STATE_HOME.get().map(PathBuf::from).filter(|path| path.is_absolute());
    let of_home = || Some(PathBuf::from(env::HOME.get()?).join(".local/state"));
    Some(folder.or_else(of_home)?.join("helix/history"))
}

/// Creates the file's folder with access only for its owner. The editor creates the file the same way.
fn make_folder(file: &Path) -> std::io::Result<()> {
    let Some(folder) = file.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Completes commands, and continues an entry after a `\` at the end of a line.
#[derive(Debug)]
struct Assist;

impl Completer for Assist {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..at).unwrap_or_default();
        let found = if typed.starts_with('/') { completions(typed) } else { Vec::new() };
        Ok((0, found.into_iter().map(|name| format!("{name} ")).collect()))
    }
}

impl Validator for Assist {
    fn validate(&self, cx: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let last = cx.input().rsplit('\n').next().unwrap_or_default();
        Ok(if is_continued(last) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Hinter for Assist {
    type Hint = String;
}

impl Highlighter for Assist {}

impl Helper for Assist {}
