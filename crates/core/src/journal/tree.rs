//! Queries over all sessions of a tree, including its root.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::SessionReader;
use super::request::head;
use super::usage::{Usages, used_by};
use crate::error::{ErrorCode, Result};
use crate::id::SessionId;
use crate::machine::session::SessionOverview;
use crate::store::{Head, SessionFilter, list_all};
use crate::usage::UsageRollup;

/// Returns the overviews of a tree's sessions, newest first.
pub(super) async fn overviews(
    logs: SessionReader<'_>,
    root: &SessionId,
) -> Result<Vec<SessionOverview>> {
    let filter = SessionFilter::new().root(root.clone());
    let mut folds = Vec::new();
    for head in list_all(logs.store, &filter).await? {
        match logs.overview(&head.session).await {
            Ok(fold) => folds.push(fold),
            // The session was deleted after it was listed.
            Err(error) if error.code() == ErrorCode::SessionNotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(folds)
}

/// Returns the current usage of a session and all its descendants, each according to its own log.
/// This includes running sessions, aborted sessions, and sessions whose caller has ended before
/// them.
///
/// The function reads the usage that the store keeps for each session. For a session with a current
/// run, or without stored usage, it reads the last snapshot and the appends after it, or the whole
/// log if there is no snapshot.
///
/// # Errors
/// Returns [`SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and the errors of the
/// store.
pub async fn usage_of_tree(logs: SessionReader<'_>, session: &SessionId) -> Result<UsageRollup> {
    let root = head(logs.store, session).await?.created.root;
    let filter = SessionFilter::new().root(root);
    let mut usages = Usages::of(logs.store, &filter);
    let mut tree: Vec<(Head, Arc<UsageRollup>)> = Vec::new();
    while let Some(found) = usages.next_page().await? {
        for session in found {
            if let Some(used) = used_by(logs, &session).await? {
                tree.push((session.head, used));
            }
        }
    }
    let mut children: BTreeMap<&SessionId, Vec<&(Head, Arc<UsageRollup>)>> = BTreeMap::new();
    for member in &tree {
        if let Some(parent) = &member.0.created.parent {
            children.entry(parent).or_default().push(member);
        }
    }
    let top = tree.iter().find(|(head, _)| head.session == *session);
    Ok(top.map(|top| usage_with(top, &children)).unwrap_or_default())
}

fn usage_with(
    (head, used): &(Head, Arc<UsageRollup>),
    children: &BTreeMap<&SessionId, Vec<&(Head, Arc<UsageRollup>)>>,
) -> UsageRollup {
    let mut rollup = UsageRollup::clone(used);
    // The log contains the children's tokens as of their last reports. The current values replace
    // them.
    rollup.sub_agents.values_mut().for_each(|used| used.tokens = Default::default());
    for child in children.get(&head.session).into_iter().flatten() {
        let below = usage_with(child, children);
        let used = rollup.sub_agents.get_or_default(Arc::clone(&child.0.created.agent));
        used.tokens += below.tokens;
        rollup += &below;
    }
    rollup
}
