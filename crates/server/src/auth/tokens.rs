//! The file of bearer tokens: names, roles and digests.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use helix_agents_core::error::{Error, ErrorCode, Result};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::token_file::TokenFile;
use super::{Principal, Scope};

/// The rights of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// All actions on all sessions, including those without an owner, and their logs.
    Admin,
    /// All actions on the token's own sessions, except reading their logs.
    User,
    /// Reads the token's own sessions. This is for the second token of a user, such as that of a dashboard.
    Reader,
}

impl Role {
    /// Returns `true` if the role permits actions that change sessions.
    pub(super) const fn may_write(self) -> bool {
        !matches!(self, Self::Reader)
    }

    /// Returns the scopes of the role.
    pub(super) const fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Admin => &[Scope::AllSessions, Scope::ReadLogs],
            Self::User | Self::Reader => &[],
        }
    }
}

/// The bearer tokens that a server accepts.
///
/// Only digests are kept, so the file does not reveal a token. The digest is SHA-256 without salt, which is safe for
/// random tokens of at least 128 bits and for no others. A name may have several tokens, so that one can be replaced
/// without an interruption.
///
/// # Examples
/// ```
/// use helix_agents_server::{Tokens, token_digest};
///
/// let file = format!(
///     "[[token]]\nname = \"ann\"\nrole = \"user\"\nsha256 = \"{}\"\n",
///     token_digest("8f2c61d09b7e4a35b1f0c2d3e4a59687")
/// );
/// let tokens = Tokens::parse(&file)?;
/// assert_eq!(tokens.len(), 1);
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Tokens {
    entries: Vec<Entry>,
    /// The file that the tokens were read from.
    pub(super) file: Option<TokenFile>,
}

#[derive(Clone)]
struct Entry {
    name: String,
    role: Role,
    digest: [u8; 32],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    token: Vec<FileEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    name: String,
    role: Role,
    sha256: String,
}

impl Tokens {
    /// Reads tokens from a file. The server reads it again after a change, about a second later. While the changed file
    /// is invalid, the previous tokens stay valid, and the server logs the error. Replace the file by renaming another
    /// one, so that the server never reads a half of it.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the file cannot be read, and the errors of [`parse`](Self::parse).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        // The state is read first, so that a later change is noticed.
        let file = TokenFile::at(path);
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::new(ErrorCode::ConfigInvalid, "the file of tokens cannot be read")
                .with_context("path", path.display())
                .with_source(error)
        })?;
        let parsed = Self::parse(&text);
        let tokens = parsed.map_err(|error| error.with_context("path", path.display()))?;
        Ok(Self { file: Some(file), ..tokens })
    }

    /// Parses tokens from TOML, with one table `[[token]]` for each, which has a `name`, a `role` (`admin`, `user` or
    /// `reader`) and the `sha256` of the token in hexadecimal.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the text is not such a file, if a name or digest is invalid, or if two
    /// entries have the same digest.
    pub fn parse(text: &str) -> Result<Self> {
        // The error of the parser quotes the line, which may contain a token that was pasted by mistake.
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| {
                text.get(..span.start).unwrap_or_default().matches('\n').count() + 1
            });
            invalid(format!("the file of tokens is invalid at line {line}"))
        })?;
        let (mut entries, mut digests) = (Vec::new(), BTreeSet::new());
        for FileEntry { name, role, sha256 } in file.token {
            let Some(digest) = parse_digest(&sha256) else {
                let message = "a digest is not a SHA-256 in hexadecimal, 64 digits";
                return Err(invalid(message).with_context("token", name));
            };
            if Principal::new(name.as_str()).is_none() {
                return Err(invalid("the name of a token is empty, too long or not printable"));
            }
            if !digests.insert(digest) {
                let message = "two tokens have the same digest";
                return Err(invalid(message).with_context("token", name));
            }
            entries.push(Entry { name, role, digest });
        }
        Ok(Self { entries, file: None })
    }

    /// Returns the number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if there are no tokens. The server then refuses all requests.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the name and the role of a token. The time does not depend on which digest matches, or how much of it.
    pub(super) fn find(&self, token: &str) -> Option<(&str, Role)> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let mut found = None;
        for entry in &self.entries {
            if bool::from(entry.digest.ct_eq(&digest)) {
                found = Some((entry.name.as_str(), entry.role));
            }
        }
        found
    }
}

impl fmt::Debug for Tokens {
    /// Omits the digests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.entries.iter().map(|entry| (&entry.name, entry.role));
        f.debug_map().entries(names).finish()
    }
}

/// Returns the digest of a token, as the file of [`Tokens`] contains it.
#[must_use]
pub fn token_digest(token: &str) -> String {
    Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    // The parser below would accept a sign.
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(digest)
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::ConfigInvalid, message)
}

#[cfg(test)]
mod tests;
