//! Names of keys.
//!
//! The keys of one session have the same hash tag, so that a script can use them together in a
//! cluster, too. Session ids are arbitrary text, so characters that would end a hash tag are
//! escaped.

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::SessionId;

/// The keys with one prefix.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Result<Self> {
        check_prefix(prefix)?;
        Ok(Self { prefix: prefix.to_owned() })
    }

    /// Returns a pattern that matches all keys of the store. It also matches keys of a prefix that
    /// begins with this one and a `:`.
    pub(crate) fn pattern(&self) -> String {
        format!("{}:*", self.prefix)
    }

    /// The schema version of the data.
    pub(crate) fn schema(&self) -> String {
        format!("{}:{{index}}:schema", self.prefix)
    }

    /// The index of all sessions by creation time.
    pub(crate) fn sessions(&self) -> String {
        format!("{}:{{index}}:sessions", self.prefix)
    }

    /// The index of sessions that may have a current run.
    pub(crate) fn runs(&self) -> String {
        format!("{}:{{index}}:runs", self.prefix)
    }

    /// The index of sessions that may have a wake time, by that time.
    pub(crate) fn wakes(&self) -> String {
        format!("{}:{{index}}:wakes", self.prefix)
    }

    /// The index of the sessions with a tag, by creation time. Tags are distributed over the nodes of
    /// a cluster. No session has a key with this name.
    pub(crate) fn tagged(&self, key: &str, value: &str) -> String {
        let key = tag(key).replace('=', "%3D");
        format!("{}:{{{key}={}}}:tagged", self.prefix, tag(value))
    }

    pub(crate) fn of(&self, session: &SessionId) -> SessionKeys {
        SessionKeys { begin: format!("{}:{{{}}}:", self.prefix, tag(session.as_str())) }
    }
}

/// The keys of one session.
#[derive(Debug, Clone)]
pub(crate) struct SessionKeys {
    begin: String,
}

impl SessionKeys {
    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.begin)
    }

    pub(crate) fn head(&self) -> String {
        self.key("head")
    }

    pub(crate) fn log(&self) -> String {
        self.key("log")
    }

    /// The snapshot of the log.
    pub(crate) fn snapshot(&self) -> String {
        self.key("snapshot")
    }

    /// The forks that share this log, by generation, each with the version up to which it shares the log.
    pub(crate) fn shares(&self) -> String {
        self.key("shares")
    }

    /// The log of a deleted session, identified by its generation, that forks still share.
    pub(crate) fn kept_log(&self, generation: &str) -> String {
        self.key(&format!("log:{generation}"))
    }

    pub(crate) fn kept_shares(&self, generation: &str) -> String {
        self.key(&format!("shares:{generation}"))
    }

    /// The index of the sessions in the tree below this root, by creation time.
    pub(crate) fn tree(&self) -> String {
        self.key("tree")
    }

    /// The state of the stream.
    pub(crate) fn feed(&self) -> String {
        self.key("feed")
    }

    pub(crate) fn chunks(&self) -> String {
        self.key("chunks")
    }

    /// The discarded attempts, each with the last chunk at that time.
    pub(crate) fn discarded(&self) -> String {
        self.key("discarded")
    }

    /// The last watermarks of children.
    pub(crate) fn marks(&self) -> String {
        self.key("marks")
    }

    /// The channel on which writes to the stream are announced.
    pub(crate) fn written(&self) -> String {
        self.key("written")
    }

    /// Returns the keys of the stream, with the channel last.
    pub(crate) fn stream(&self) -> [String; 5] {
        [self.feed(), self.chunks(), self.discarded(), self.marks(), self.written()]
    }
}

/// Escapes an id as a hash tag: never empty, and without braces.
fn tag(id: &str) -> String {
    let mut tag = String::with_capacity(id.len());
    for letter in id.chars() {
        match letter {
            '{' => tag.push_str("%7B"),
            '}' => tag.push_str("%7D"),
            '%' => tag.push_str("%25"),
            _ => tag.push(letter),
        }
    }
    if tag.is_empty() { "%".to_owned() } else { tag }
}

/// The separator between the parts of an index member. No id contains it.
const BETWEEN: char = '\0';

/// Returns an index member: a session and a tag that distinguishes the entries of one session.
pub(crate) fn member(session: &SessionId, tag: &str) -> String {
    format!("{session}{BETWEEN}{tag}")
}

/// Splits an index member into its parts.
pub(crate) fn parts(member: &str) -> Option<(SessionId, &str)> {
    let (session, tag) = member.split_once(BETWEEN)?;
    Some((SessionId::from(session), tag))
}

/// Rejects a prefix with characters that are special in Redis keys or patterns.
fn check_prefix(prefix: &str) -> Result<()> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    if (1..=64).contains(&prefix.len()) && prefix.chars().all(is_plain) {
        return Ok(());
    }
    let message = "a prefix must consist of 1 to 64 letters, digits, `-`, `_`, `.` or `:`";
    Err(Error::new(ErrorCode::ConfigInvalid, message).with_context("prefix", prefix))
}

#[cfg(test)]
mod tests;
