//! The id under which a front end answers an approval request.

use std::fmt;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::MAX_ID_BYTES;
use helix_agents_core::session::CallRef;

/// The maximum length of an approval id in bytes: two ids and a digest.
const MAX_BYTES: usize = 3 * MAX_ID_BYTES;

/// The id of an approval request: the call and the digest of the arguments that were shown. Its text is `call~digest`
/// or `session#call~digest`.
///
/// An answer repeats the id, so it applies only to the arguments that the approver saw.
///
/// # Examples
///
/// ```
/// use helix_agents_protocols::ApprovalId;
///
/// let id = ApprovalId::new("1.0".into(), "9f2c");
/// assert_eq!(id.to_string(), "1.0~9f2c");
/// assert_eq!(ApprovalId::parse("1.0~9f2c")?, id);
/// assert!(ApprovalId::parse("1.0").is_err());
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalId {
    /// The call that waits for the approval.
    pub call: CallRef,
    /// The digest of the call's arguments.
    pub digest: String,
}

impl ApprovalId {
    /// Creates the id of an approval request.
    #[must_use]
    pub fn new(call: CallRef, digest: impl Into<String>) -> Self {
        Self { call, digest: digest.into() }
    }

    /// Parses an id that a front end sent.
    ///
    /// # Errors
    /// Returns [`ErrorCode::InputInvalid`] if the text is not an approval id.
    pub fn parse(text: &str) -> Result<Self> {
        let parts = text.rsplit_once('~').filter(|(call, digest)| {
            text.len() <= MAX_BYTES && !call.is_empty() && !digest.is_empty()
        });
        let Some((call, digest)) = parts else {
            let message = "the approval id is not one of this server: expected `call~digest`";
            return Err(Error::new(ErrorCode::InputInvalid, message));
        };
        Ok(Self::new(CallRef::from(call), digest))
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.call, self.digest)
    }
}
