//! Identifiers. All are cheap to clone and are plain strings in the log.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, ErrorCode, Result};

/// The maximum length of an id that a caller chooses, in bytes.
pub const MAX_ID_BYTES: usize = 200;

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the id as text.
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
    /// The id of a session: one conversation with one agent.
    SessionId
}
string_id! {
    /// The id of a run: one execution within a session.
    RunId
}
string_id! {
    /// The id of a tool call. The framework's ids are `{step}.{index}` and unique within a session.
    /// The provider's own id is kept separately and only used in requests.
    CallId
}
string_id! {
    /// The id of an append. Repeating an append with its id returns the first result.
    AppendId
}
string_id! {
    /// The id of a request from outside a run (interrupt, abort, submission or message). Repeating a request has no
    /// further effect.
    RequestId
}
string_id! {
    /// The id of a message, chosen by the client that sends it.
    MessageId
}

/// The id of a stream batch. Repeating a batch with its id returns the first result. It is only
/// kept in memory, so it is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchId(pub u128);

impl SessionId {
    /// Validates an id that a caller chose.
    ///
    /// # Errors
    /// Returns [`ErrorCode::IdInvalid`] if the id is empty, longer than [`MAX_ID_BYTES`], contains a control character,
    /// or contains `-sub-` or `-agent-`, which are reserved for child sessions.
    pub fn validated(text: impl Into<String>) -> Result<Self> {
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
    /// Validates any session id, including those of child sessions.
    ///
    /// # Errors
    /// Returns [`ErrorCode::IdInvalid`] if the id is empty, longer than [`MAX_ID_BYTES`] or contains a control
    /// character.
    pub fn check(&self) -> Result<()> {
        check("session", self.as_str())
    }

    /// Returns the id of the child session that a call of a session starts. If it would be too
    /// long, a digest replaces the parent's id.
    #[must_use]
    pub fn of_call(parent: &Self, call: &CallId) -> Self {
        Self::below(parent, &format!("-sub-{call}"))
    }

    /// Returns the session id of the companion with this name.
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
    /// Validates an id.
    ///
    /// # Errors
    /// Returns the errors of [`validated`](Self::validated).
    pub fn check(&self) -> Result<()> {
        check("run", self.as_str())
    }

    /// Validates an id that a caller chose.
    ///
    /// # Errors
    /// Returns [`ErrorCode::IdInvalid`] if the id is empty, longer than [`MAX_ID_BYTES`] or contains a control
    /// character.
    pub fn validated(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        check("run", &text)?;
        Ok(Self::from(text))
    }
}

impl CallId {
    /// Returns the id of the call at `index` (from 0) in the reply of `step`.
    #[must_use]
    pub fn new(step: u32, index: usize) -> Self {
        Self::from(format!("{step}.{index}"))
    }

    /// Returns the call's index in its reply, from 0, if the id is one of the framework's.
    #[must_use]
    pub fn index(&self) -> Option<u32> {
        self.as_str().split_once('.')?.1.parse().ok()
    }

    /// Returns the step of the call, if the id is one of the framework's.
    #[must_use]
    pub fn step(&self) -> Option<u32> {
        self.as_str().split_once('.')?.0.parse().ok()
    }
}

impl MessageId {
    /// Validates an id that a client chose.
    ///
    /// # Errors
    /// Returns [`ErrorCode::IdInvalid`] if the id is empty, longer than [`MAX_ID_BYTES`] or contains a control
    /// character.
    pub fn validated(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        check("message", &text)?;
        Ok(Self::from(text))
    }
}

impl AppendId {
    /// Returns the id at the position before the first append.
    #[must_use]
    pub fn none() -> Self {
        Self::from("")
    }

    /// Validates the id of an append.
    ///
    /// # Errors
    /// Returns [`ErrorCode::IdInvalid`] if the id is empty, longer than [`MAX_ID_BYTES`] or contains a control
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
    } else if has_control(text) {
        "holds a control character"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorCode::IdInvalid, format!("the {what} id {problem}")))
}

/// Returns `true` if the text contains a control character.
pub(crate) fn has_control(text: &str) -> bool {
    !is_printable_ascii(text.as_bytes()) && text.chars().any(char::is_control)
}

/// Returns `true` if all bytes are in the range 0x20–0x7e.
///
/// Each append checks several ids, and nearly all ids are printable ASCII, so this checks eight
/// bytes at once.
fn is_printable_ascii(bytes: &[u8]) -> bool {
    const fn repeated(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    // The high bit of a byte is set in `word` from 0x80, by the subtraction below 0x20, and by the
    // addition at 0x7f. Only such a byte causes a carry or borrow into the next one.
    let is_printable = |word: u64| {
        (word | word.wrapping_sub(repeated(0x20)) | word.wrapping_add(repeated(0x01)))
            & repeated(0x80)
            == 0
    };
    let (words, rest) = bytes.as_chunks();
    words.iter().all(|word| is_printable(u64::from_ne_bytes(*word)))
        && rest.iter().all(|byte| matches!(byte, 0x20..=0x7e))
}

#[cfg(test)]
mod tests;
