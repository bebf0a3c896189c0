//! The file of tokens: read, changed and replaced as a whole.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::server::Tokens;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::Role;

/// The start of a written file.
const HEADING: &str =
    "# Tokens of `helix serve`, written by `helix token`. Comments are not kept.\n\n";

/// The file.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    content: Content,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    #[serde(default)]
    token: Vec<Entry>,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The name of the user.
    pub(super) name: String,
    /// The rights.
    pub(super) role: Role,
    /// The digest in hexadecimal.
    pub(super) sha256: String,
}

impl TokenFile {
    /// Reads a file. One that does not exist has no tokens.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the file cannot be read, or if the server would refuse it.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let content = match std::fs::read_to_string(path) {
            Ok(text) => parse(&text).map_err(|error| error.with_context("file", path.display()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Content::default(),
            Err(error) => {
                let message = format!("the file of tokens cannot be read: {error}");
                let error = Error::new(ErrorCode::ConfigInvalid, message);
                return Err(error.with_context("file", path.display()));
            }
        };
        Ok(Self { path: path.to_owned(), content })
    }

    /// Returns the tokens.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.content.token
    }

    /// Adds a token.
    pub(super) fn add(&mut self, entry: Entry) {
        self.content.token.push(entry);
    }

    /// Removes all tokens of a user and returns their number.
    ///
    /// # Errors
    /// Returns [`ErrorCode::InputInvalid`] if there are none.
    pub(super) fn remove(&mut self, name: &str) -> Result<usize> {
        let before = self.content.token.len();
        self.content.token.retain(|entry| entry.name != name);
        match before - self.content.token.len() {
            0 => Err(Error::new(ErrorCode::InputInvalid, "no token has this name")
                .with_context("name", name)),
            removed => Ok(removed),
        }
    }

    /// Replaces the file as a whole. Only its owner can read it.
    ///
    /// # Errors
    /// Returns an error if the name of a token is invalid, and if the file cannot be written. It is unchanged then.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        let text = HEADING.to_owned() + &toml::to_string(&self.content)?;
        Tokens::parse(&text)?;
        let unwritable = || format!("{} cannot be written", self.path.display());
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        // Temporary files are created with mode 0600.
        let mut stage = NamedTempFile::new_in(folder).with_context(unwritable)?;
        stage.write_all(text.as_bytes()).with_context(unwritable)?;
        stage.as_file().sync_all().with_context(unwritable)?;
        stage.persist(&self.path).with_context(unwritable)?;
        Ok(())
    }
}

/// Parses a file with the server's rules, whose errors do not quote it.
fn parse(text: &str) -> Result<Content> {
    Tokens::parse(text)?;
    toml::from_str(text).map_err(|_| {
        Error::new(ErrorCode::ConfigInvalid, "the file has roles that this program does not know")
    })
}
