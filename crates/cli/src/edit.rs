//! A value in the editor of whoever is asked.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use helix_agents::error::{Error, ErrorCode};
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::process::Command;

use crate::{env, given, regular};

/// The most bytes of what comes back.
const MOST_BYTES: u64 = 1024 * 1024;

/// What came back from the editor.
#[derive(Debug)]
pub(crate) enum Edited {
    /// The same value.
    Unchanged,
    /// Another one.
    Changed(Change),
}

/// A value that somebody wrote.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) value: Value,
    file: NamedTempFile,
}

impl Change {
    /// Keeps the file that it was written in, and tells where.
    pub(crate) fn keep(self) -> Result<PathBuf> {
        Ok(self.file.into_temp_path().keep()?)
    }
}

/// Opens a value in the editor that VISUAL or EDITOR names, and waits until it is closed.
///
/// # Errors
/// [`ErrorCode::InputInvalid`] if there is no editor, it fails, or what it leaves is not JSON.
pub(crate) async fn json(value: &Value) -> Result<Edited> {
    let editor = env::VISUAL.text().or_else(|| env::EDITOR.text()).ok_or_else(|| {
        let message = "no editor is named: set VISUAL or EDITOR, or give the arguments themselves \
                       with `helix approvals edit CALL --arguments JSON`";
        Error::new(ErrorCode::InputInvalid, message)
    })?;
    // Only for the eyes of whoever runs this.
    let mut file = tempfile::Builder::new().prefix("helix-").suffix(".json").tempfile()?;
    writeln!(file, "{value:#}")?;
    // The variable may hold options, as everywhere.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$@\""), "editor"]).arg(file.path());
    let status = command.status().await.context("the editor could not be started")?;
    if !status.success() {
        let message = format!("the editor `{editor}` ended with {status}, so nothing was answered");
        return Err(Error::new(ErrorCode::InputInvalid, message).into());
    }
    // By its name: some editors put another file in its place.
    let text =
        regular::read_text(file.path(), MOST_BYTES).context("what the editor left behind")?;
    match given::value(&text, "the arguments") {
        Ok(edited) if edited == *value => Ok(Edited::Unchanged),
        Ok(value) => Ok(Edited::Changed(Change { value, file })),
        Err(error) => {
            let kept = file.into_temp_path().keep()?;
            Err(anyhow::Error::from(error).context(format!("see {}", kept.display())))
        }
    }
}
