//! The usage that a store keeps of each session.

use std::sync::Arc;

use super::Head;
use crate::usage::UsageRollup;

/// A session with the usage that its appends said last.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionUsage {
    /// The session.
    pub head: Head,
    /// The usage of the session itself, without its children. `None` if no append has said any:
    /// then only the log knows it.
    pub usage: Option<Arc<UsageRollup>>,
}
