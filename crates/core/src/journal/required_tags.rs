//! Labels that an operation requires of a session, such as its owner.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::store::{Head, StateStore};

/// Returns `true` if the root of this session's tree has all of these tags. The root of a deleted tree has none.
///
/// An operation that checks this after it has read the session, and then appends at the position that it has read,
/// never changes a session without the tags: if the id belongs to another session by then, the append fails.
///
/// # Errors
/// Returns the errors of the store.
pub async fn root_has_tags(
    store: &dyn StateStore,
    head: &Head,
    tags: &BTreeMap<String, String>,
) -> Result<bool> {
    if tags.is_empty() {
        return Ok(true);
    }
    if head.created.root == head.session {
        return Ok(head.created.has_tags(tags));
    }
    let root = store.head(&head.created.root).await?;
    Ok(root.is_some_and(|root| root.created.has_tags(tags)))
}
