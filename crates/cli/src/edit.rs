//! Edits a JSON value in the user's editor.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use helix_agents::error::{Error, ErrorCode};
use helix_agents::tools::safe_read;
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::process::Command;

use crate::{env, input};

/// The maximum size of the edited text in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The outcome of an edit.
#[derive(Debug)]
pub(crate) enum Edited {
    /// The value is unchanged.
    Unchanged,
    /// The value was changed.
    Changed(Change),
}

/// A changed value and the temporary file with its text.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) value: Value,
    file: NamedTempFile,
}

impl Change {
    /// Keeps the temporary file and returns its path.
    pub(crate) fn keep(self) -> Result<PathBuf> {
        Ok(self.file.into_temp_path().keep()?)
    }
}

/// Opens a value in the editor of VISUAL or EDITOR and waits until the editor exits.
///
/// # Errors
/// Returns [`ErrorCode::InputInvalid`] if no editor is set, it fails, or the edited text is not
/// JSON.
pub(crate) async fn json(value: &Value) -> Result<Edited> {
    let editor = env::VISUAL.text().or_else(|| env::EDITOR.text()).ok_or_else(|| {
        let message = "no editor is set: set VISUAL or EDITOR, or pass the arguments with `helix \
                       approvals edit CALL --arguments JSON`";
        Error::new(ErrorCode::InputInvalid, message)
    })?;
    // Only the current user can read the file.
    let mut file = tempfile::Builder::new().prefix("helix-").suffix(".json").tempfile()?;
    writeln!(file, "{value:#}")?;
    // The variable may contain options, so a shell parses it.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$@\""), "editor"]).arg(file.path());
    let status = command.status().await.context("the editor could not be started")?;
    if !status.success() {
        let message =
            format!("the editor `{editor}` failed with {status}, so nothing was submitted");
        return Err(Error::new(ErrorCode::InputInvalid, message).into());
    }
    // Reads by path, because some editors replace the file.
    let text =
        safe_read::read_text(file.path(), MAX_BYTES).context("the edited file cannot be read")?;
    match input::value(&text, "the arguments") {
        Ok(edited) if edited == *value => Ok(Edited::Unchanged),
        Ok(value) => Ok(Edited::Changed(Change { value, file })),
        Err(error) => {
            let kept = file.into_temp_path().keep()?;
            Err(anyhow::Error::from(error)
                .context(format!("the edited text was saved to {}", kept.display())))
        }
    }
}
