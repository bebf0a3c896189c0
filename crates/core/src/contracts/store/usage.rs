//! The usage of each session, as recorded by a store.

use std::sync::Arc;

use super::Head;
use crate::usage::UsageRollup;

/// A session with its recorded usage.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionUsage {
    /// The head of the session.
    pub head: Head,
    /// The usage of the session itself, without its children, as of the last append that carried
    /// usage. It does not include later events, such as those of a current run. `None` if no append
    /// carried usage.
    pub usage: Option<Arc<UsageRollup>>,
}
