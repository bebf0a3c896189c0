//! The form of an error in a session's log.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Error, ErrorCode, ErrorKind, bytes_of, in_full};
use crate::text::{MAX_QUOTED, excerpt};

/// An error in a session's log. It outlives the process and the build that created it, so its code
/// is a string.
///
/// The record of a run or of a model call has content in its detail only, as [`Error`] does. The
/// message of a tool result's record is read by the model and may contain content; it is only kept
/// in the session's log and stream.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorRecord {
    /// The error's kind, which tells whether the caller can retry, must wait, or must change
    /// something.
    pub kind: ErrorKind,
    /// The stable code.
    pub code: Cow<'static, str>,
    /// The message for humans.
    pub message: String,
    /// Text that may repeat content. Neither `Display` nor `Debug` shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl ErrorRecord {
    /// Creates the record of an error that was never an [`Error`] value.
    #[cold]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let (kind, code) = (code.kind(), Cow::Borrowed(code.as_str()));
        Self { kind, code, message: message.into(), detail: None }
    }

    /// Adds text that may repeat content. At most [`MAX_QUOTED`] bytes are kept.
    #[must_use]
    pub fn with_detail(mut self, detail: impl AsRef<str>) -> Self {
        self.detail = Some(excerpt(detail.as_ref(), MAX_QUOTED).into_owned());
        self
    }

    /// Removes the detail, so that the record can be kept outside of the session's log.
    #[must_use]
    pub fn without_detail(mut self) -> Self {
        self.detail = None;
        self
    }

    /// Returns the message with the detail, for users with access to the session.
    #[must_use]
    pub fn in_full(&self) -> String {
        in_full(&self.message, self.detail.as_deref())
    }

    /// Converts the record into an error. If this build does not know the code, the error has the
    /// code `fallback`.
    #[must_use]
    pub fn to_error(&self, fallback: ErrorCode) -> Error {
        let code = ErrorCode::ALL.iter().copied().find(|code| self.is(*code));
        let error = Error::new(code.unwrap_or(fallback), self.message.clone());
        match &self.detail {
            Some(detail) => error.with_detail(detail),
            None => error,
        }
    }

    /// Returns `true` if the record has this code.
    #[must_use]
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code == code.as_str()
    }
}

impl fmt::Debug for ErrorRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("ErrorRecord");
        out.field("kind", &self.kind).field("code", &self.code).field("message", &self.message);
        out.field("detail", &bytes_of(self.detail.as_deref())).finish()
    }
}

impl fmt::Display for ErrorRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
