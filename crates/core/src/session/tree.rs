//! All sessions below a root, as their own logs tell them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::request::head;
use super::{Logs, SessionOverview};
use crate::error::{ErrorCode, Result};
use crate::id::SessionId;
use crate::store::{SessionFilter, list_all};
use crate::usage::UsageRollup;

/// The sessions of a tree, newest first.
pub(super) async fn overviews(logs: Logs<'_>, root: &SessionId) -> Result<Vec<SessionOverview>> {
    let filter = SessionFilter { root: Some(root.clone()), ..SessionFilter::default() };
    let mut folds = Vec::new();
    for head in list_all(logs.store, &filter).await? {
        match logs.overview(&head.session).await {
            Ok(fold) => folds.push(fold),
            // It was deleted since it was listed.
            Err(error) if error.code() == ErrorCode::SessionNotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(folds)
}

/// What a session and all below it have used up so far, each as its own log tells it: those at work,
/// those that were aborted, and those whose caller has ended before them included.
///
/// # Errors
/// [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and the store's.
pub async fn usage_of_tree(logs: Logs<'_>, session: &SessionId) -> Result<UsageRollup> {
    let root = head(logs.store, session).await?.created.root;
    let folds = overviews(logs, &root).await?;
    let mut children: BTreeMap<&SessionId, Vec<&SessionOverview>> = BTreeMap::new();
    for fold in &folds {
        if let Some(parent) = fold.parent() {
            children.entry(&parent.session).or_default().push(fold);
        }
    }
    let top = folds.iter().find(|fold| fold.id() == session);
    Ok(top.map(|fold| usage_with(fold, &children)).unwrap_or_default())
}

fn usage_with(
    fold: &SessionOverview,
    children: &BTreeMap<&SessionId, Vec<&SessionOverview>>,
) -> UsageRollup {
    let mut rollup = fold.usage_rollup();
    // What its log says of children's tokens is what they had used when they told it.
    rollup.sub_agents.values_mut().for_each(|used| used.tokens = Default::default());
    for child in children.get(fold.id()).into_iter().flatten() {
        let below = usage_with(child, children);
        let used = rollup.sub_agents.entry(Arc::clone(child.agent())).or_default();
        used.tokens += below.tokens;
        rollup += &below;
    }
    rollup
}
