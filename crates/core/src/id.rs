//! Names of things. All are cheap to clone; all are plain strings in the log.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, ErrorCode, Result};

/// The longest id, in bytes, that a caller may choose.
pub const MAX_ID_BYTES: usize = 200;

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
    };
}

string_id! {
    /// One conversation with one agent; the key of everything.
    SessionId
}
string_id! {
    /// One execution within a session.
    RunId
}
string_id! {
    /// One tool call. Ours are `{step}.{index}` and never repeat within a session; the provider's
    /// own id is kept beside it, for the wire only.
    CallId
}
string_id! {
    /// One append. Repeating an append under its id is answered as the first time.
    AppendId
}
string_id! {
    /// One request from outside (interrupt, abort). Repeating it has no further effect.
    RequestId
}

/// One batch of a stream. Repeating a batch under its id is answered as the first time. It is kept
/// nowhere but in memory, so it is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchId(pub u128);

impl SessionId {
    /// Checks an id that a caller chose.
    ///
    /// # Errors
    /// [`ErrorCode::IdInvalid`] if it is empty, longer than [`MAX_ID_BYTES`], holds a control
    /// character, or holds `-sub-` or `-agent-`, which name the sessions of children.
    pub fn chosen(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        check("session", &text)?;
        if text.contains("-sub-") || text.contains("-agent-") {
            return Err(Error::new(
                ErrorCode::IdInvalid,
                "a session id must not contain `-sub-` or `-agent-`: they name children's sessions",
            )
            .with_context("session", text));
        }
        Ok(Self::from(text))
    }
}

impl SessionId {
    /// Checks an id from elsewhere, a child's among them.
    ///
    /// # Errors
    /// [`ErrorCode::IdInvalid`] if it is empty, longer than [`MAX_ID_BYTES`] or holds a control
    /// character.
    pub fn check(&self) -> Result<()> {
        check("session", self.as_str())
    }

    /// The session of a sub-agent for this call of a session. Where that would be longer than an id
    /// may be, a digest stands for the parent's.
    #[must_use]
    pub fn of_call(parent: &Self, call: &CallId) -> Self {
        Self::below(parent, &format!("-sub-{call}"))
    }

    /// The session of a companion of that name.
    #[must_use]
    pub fn of_companion(parent: &Self, name: &str) -> Self {
        Self::below(parent, &format!("-agent-{name}"))
    }

    fn below(parent: &Self, rest: &str) -> Self {
        if parent.as_str().len() + rest.len() <= MAX_ID_BYTES {
            return Self::from(format!("{parent}{rest}"));
        }
        let digest = Sha256::digest(parent.as_str());
        let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self::from(format!("{digest}{rest}"))
    }
}

impl RunId {
    /// Checks an id from elsewhere.
    ///
    /// # Errors
    /// As [`chosen`](Self::chosen).
    pub fn check(&self) -> Result<()> {
        check("run", self.as_str())
    }

    /// Checks an id that a caller chose.
    ///
    /// # Errors
    /// [`ErrorCode::IdInvalid`] if it is empty, longer than [`MAX_ID_BYTES`] or holds a control
    /// character.
    pub fn chosen(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        check("run", &text)?;
        Ok(Self::from(text))
    }
}

impl CallId {
    /// The id of the call at `index` (from 0) of the reply of `step`.
    #[must_use]
    pub fn new(step: u32, index: usize) -> Self {
        Self::from(format!("{step}.{index}"))
    }

    /// The place in its reply of a call whose id is ours, from 0.
    #[must_use]
    pub fn index(&self) -> Option<u32> {
        self.as_str().split_once('.')?.1.parse().ok()
    }

    /// The step of a call whose id is ours.
    #[must_use]
    pub fn step(&self) -> Option<u32> {
        self.as_str().split_once('.')?.0.parse().ok()
    }
}

impl AppendId {
    /// The id that stands before the first append.
    #[must_use]
    pub fn none() -> Self {
        Self::from("")
    }

    /// Checks the id of an append that is to be taken.
    ///
    /// # Errors
    /// [`ErrorCode::IdInvalid`] if it is empty, longer than [`MAX_ID_BYTES`] or holds a control
    /// character.
    pub fn check(&self) -> Result<()> {
        check("append", self.as_str())
    }
}

fn check(what: &'static str, text: &str) -> Result<()> {
    let problem = if text.is_empty() {
        "is empty"
    } else if text.len() > MAX_ID_BYTES {
        "is longer than 200 bytes"
    } else if text.chars().any(char::is_control) {
        "holds a control character"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorCode::IdInvalid, format!("the {what} id {problem}")))
}

#[cfg(test)]
mod tests;
