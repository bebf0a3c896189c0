//! Names of keys.
//!
//! Those of one session have the same hash tag, so scripts may use them together, also in a cluster. An id is text of
//! others: whatever would end a tag is written in another way.

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;

use crate::config::check_prefix;

/// The keys under one prefix.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Result<Self> {
        check_prefix(prefix)?;
        Ok(Self { prefix: prefix.to_owned() })
    }

    /// What all keys match, and none of another prefix that does not begin with this one and a `:`.
    pub(crate) fn pattern(&self) -> String {
        format!("{}:*", self.prefix)
    }

    /// Which form the data have.
    pub(crate) fn schema(&self) -> String {
        format!("{}:{{index}}:schema", self.prefix)
    }

    /// All sessions by the time of their creation.
    pub(crate) fn sessions(&self) -> String {
        format!("{}:{{index}}:sessions", self.prefix)
    }

    /// Sessions that may have a current run.
    pub(crate) fn runs(&self) -> String {
        format!("{}:{{index}}:runs", self.prefix)
    }

    /// Sessions that may have a time to wake up, by that time.
    pub(crate) fn wakes(&self) -> String {
        format!("{}:{{index}}:wakes", self.prefix)
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

    /// What was made of the log up to a version.
    pub(crate) fn snapshot(&self) -> String {
        self.key("snapshot")
    }

    /// Who shares the log: the lives of forks, each with the version up to which it does.
    pub(crate) fn shares(&self) -> String {
        self.key("shares")
    }

    /// The log of a life that has ended, for those who share it.
    pub(crate) fn kept_log(&self, life: &str) -> String {
        self.key(&format!("log:{life}"))
    }

    pub(crate) fn kept_shares(&self, life: &str) -> String {
        self.key(&format!("shares:{life}"))
    }

    /// The sessions of the tree whose root this is, by the time of their creation.
    pub(crate) fn tree(&self) -> String {
        self.key("tree")
    }

    /// How the stream stands.
    pub(crate) fn feed(&self) -> String {
        self.key("feed")
    }

    pub(crate) fn chunks(&self) -> String {
        self.key("chunks")
    }

    /// Attempts that were discarded, each with the number of the last chunk by then.
    pub(crate) fn discarded(&self) -> String {
        self.key("discarded")
    }

    /// The last marks of children.
    pub(crate) fn marks(&self) -> String {
        self.key("marks")
    }

    /// The channel on which writes to the stream are told.
    pub(crate) fn written(&self) -> String {
        self.key("written")
    }

    /// The keys of the stream, with the channel last.
    pub(crate) fn stream(&self) -> [String; 5] {
        [self.feed(), self.chunks(), self.discarded(), self.marks(), self.written()]
    }
}

/// An id as a hash tag: never empty, and without a brace.
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

/// What stands between the parts of an index's members; no id has it.
const BETWEEN: char = '\0';

/// A member of an index: a session, and what tells this entry from others of the same session.
pub(crate) fn member(session: &SessionId, tag: &str) -> String {
    format!("{session}{BETWEEN}{tag}")
}

/// The parts of a member.
pub(crate) fn parts(member: &str) -> Option<(SessionId, &str)> {
    let (session, tag) = member.split_once(BETWEEN)?;
    Some((SessionId::from(session), tag))
}

#[cfg(test)]
mod tests;
