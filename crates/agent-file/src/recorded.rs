//! Agent files of recorded sessions. A session records the file in its tags, so that any process can
//! build its agent again.

use std::collections::BTreeMap;
use std::path::Path;

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::document::AgentFile;

/// The tag that records the path of the file.
const PATH: &str = "agent_file";

/// The tag that records the digest of the file when the session was created.
const DIGEST: &str = "agent_digest";

/// The tag that records the folder of the file tools, if the program chose another one than the file.
const FILES: &str = "files";

/// The agent file of a session, as the tags of the session record it.
///
/// # Examples
///
/// ```
/// use helix_agents_agent_file::{AgentFile, RecordedFile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("reader.toml");
/// std::fs::write(&path, "name = 'reader'\nprompt = 'Read.'")?;
/// let tags = AgentFile::read(&path)?.session_tags(None);
///
/// // Later, in a process that resumes the session:
/// let recorded = RecordedFile::of_tags(&tags).ok_or("not created from an agent file")?;
/// std::fs::write(&path, "name = 'reader'\nprompt = 'Read aloud.'")?;
/// let file = recorded.read(None)?;
/// file.check_name("reader")?;
/// assert_eq!(recorded.differences(&file).len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedFile<'a> {
    path: &'a Path,
    digest: Option<&'a str>,
    files: Option<&'a Path>,
}

impl<'a> RecordedFile<'a> {
    /// Returns the file that the tags of a session record. Returns `None` if the session was not
    /// created from an agent file.
    #[must_use]
    pub fn of_tags(tags: &'a BTreeMap<String, String>) -> Option<Self> {
        let path = Path::new(tags.get(PATH)?);
        let (digest, files) =
            (tags.get(DIGEST).map(String::as_str), tags.get(FILES).map(Path::new));
        Some(Self { path, digest, files })
    }

    /// The absolute path of the file.
    #[must_use]
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// The folder that the file tools access, if the program chose another one than the file.
    #[must_use]
    pub fn files(&self) -> Option<&'a Path> {
        self.files
    }

    /// Reads the file again, or the one at `replacement`, because the session records only the path.
    ///
    /// # Errors
    /// Returns [`ErrorCode::InputInvalid`] if the recorded file does not exist any more, and the errors of
    /// [`AgentFile::read`].
    pub fn read(&self, replacement: Option<&Path>) -> Result<AgentFile> {
        if replacement.is_none() && !self.path.exists() {
            let message = "the agent file of the session does not exist any more; restore it, or pass \
                           its new path";
            let error = Error::new(ErrorCode::InputInvalid, message);
            return Err(error.with_context("file", self.path.display()));
        }
        AgentFile::read(replacement.unwrap_or(self.path))
    }

    /// Returns the differences between a file and the one that the session was created with, as
    /// sentences for users.
    #[must_use]
    pub fn differences(&self, file: &AgentFile) -> Vec<String> {
        let mut differences = Vec::new();
        if file.path() != self.path {
            let (recorded, given) = (self.path.display(), file.path().display());
            differences.push(format!(
                "The agent file {given} replaces {recorded}, with which the session was created."
            ));
        }
        if self.digest.is_some_and(|digest| digest != file.digest()) {
            let path = file.path().display();
            differences
                .push(format!("The agent file {path} has changed since the session was created."));
        }
        differences
    }
}

impl AgentFile {
    /// Returns the tags with which a session records this file, for [`RecordedFile::of_tags`]. `files` is
    /// the folder that the program chose for the file tools.
    #[must_use]
    pub fn session_tags(&self, files: Option<&Path>) -> BTreeMap<String, String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut tags = BTreeMap::from([
            (PATH.to_owned(), text(self.path())),
            (DIGEST.to_owned(), self.digest().to_owned()),
        ]);
        tags.extend(files.map(|files| (FILES.to_owned(), text(files))));
        tags
    }

    /// Checks that the file describes the agent with this name.
    ///
    /// # Errors
    /// Returns [`ErrorCode::AgentMismatch`] if it describes another one.
    pub fn check_name(&self, agent: &str) -> Result<()> {
        if self.name() == agent {
            return Ok(());
        }
        let message = format!(
            "the session belongs to the agent `{agent}`, but {} describes `{}`",
            self.path().display(),
            self.name()
        );
        Err(Error::new(ErrorCode::AgentMismatch, message))
    }
}

#[cfg(test)]
mod tests;
