//! Deletion of sessions with their descendants and streams.

use std::collections::{BTreeMap, HashMap, HashSet};

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::SessionId;

use super::head::{Found, Part};
use crate::{Inner, script};

/// The maximum number of passes. Each pass deletes children that were created during the previous
/// one.
const ROUNDS: u32 = 100;

impl Inner {
    /// Deletes a session that has these tags. Deletes the descendants first: after an interruption, the
    /// session still exists and the deletion can be repeated. Each deletion applies to one generation, so it
    /// does not affect another session that is created with the id in the meantime.
    pub(super) async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        if session.check().is_err() {
            return Ok(false);
        }
        let mut deleted = HashSet::from([session.clone()]);
        for _ in 0..ROUNDS {
            let has_tags = |found: &Found| found.head.created.has_tags(required_tags);
            let Some(found) = self.find(session).await?.filter(has_tags) else { return Ok(false) };
            for child in self.descendants(&found).await?.iter().rev() {
                self.delete_one(child, None).await?;
                deleted.insert(child.head.session.clone());
            }
            if self.descendants(&found).await?.is_empty() {
                let existed = self.delete_one(&found, None).await?;
                self.delete_orphans(&found.head.created.root, deleted).await?;
                return Ok(existed);
            }
        }
        let message =
            "children are created faster than they can be deleted; abort the session first";
        Err(Error::new(ErrorCode::StoreBusy, message))
    }

    /// Returns the sessions below this one, each after its parent.
    pub(crate) async fn descendants(&self, above: &Found) -> Result<Vec<Found>> {
        let tree = self.keys.of(&above.head.created.root).tree();
        Ok(below(self.members(&tree).await?, &above.head.session))
    }

    /// Deletes the children of deleted sessions. A run can create them after the deletion has listed
    /// the tree. Returns their number.
    pub(crate) async fn delete_orphans(
        &self,
        root: &SessionId,
        mut deleted: HashSet<SessionId>,
    ) -> Result<u64> {
        let tree = self.keys.of(root).tree();
        let mut orphans = 0;
        for _ in 0..ROUNDS {
            let before = orphans;
            for found in self.members(&tree).await? {
                let Some(parent) = &found.head.created.parent else { continue };
                // Another process may have created the parent again.
                if deleted.contains(parent) && self.find(parent).await?.is_none() {
                    orphans += u64::from(self.delete_one(&found, None).await?);
                    deleted.insert(found.head.session);
                }
            }
            if orphans == before {
                break;
            }
        }
        Ok(orphans)
    }

    /// Deletes one session. Returns `true` if it existed. With `only_at`, deletes it only if it
    /// still has this version and no lease. Index entries are removed last: they may be stale, but
    /// are never missing.
    pub(crate) async fn delete_one(&self, found: &Found, only_at: Option<u64>) -> Result<bool> {
        let session = &found.head.session;
        let part = Part {
            session: session.clone(),
            generation: found.generation.clone(),
            version: 0,
            append: found.head.position.append.clone(),
        };
        let own = self.keys.of(session);
        let keys = self.keys_of(&part).into_iter().chain([own.snapshot()]);
        let keys: Vec<String> = keys.chain(own.stream()).collect();
        let only_at = only_at.map(|version| version.to_string());
        let mut args = vec![found.generation.as_bytes()];
        args.extend(only_at.as_ref().map(|version| version.as_bytes()));
        let mut reply = self.server.eval(&script::DELETE, &keys, &args).await?;
        let outcome = reply.text()?;
        if outcome == "changed" {
            return Ok(false);
        }
        self.watch.written(session);
        self.release(&found.base, &found.generation).await?;
        self.unlist_generation(&found.head.created, session, &found.generation).await?;
        if !found.ran.is_empty() {
            self.remove_run_entry(session, &found.ran).await?;
        }
        if !found.woken.is_empty() {
            self.remove_wake_entry(session, &found.woken).await?;
        }
        Ok(outcome == "deleted")
    }
}

/// Returns the sessions of a tree that are below this one, each after its parent.
pub(crate) fn below(tree: Vec<Found>, above: &SessionId) -> Vec<Found> {
    let mut by_parent: HashMap<SessionId, Vec<Found>> = HashMap::new();
    for found in tree {
        if let Some(parent) = found.head.created.parent.clone() {
            by_parent.entry(parent).or_default().push(found);
        }
    }
    let mut seen = HashSet::from([above.clone()]);
    let mut next = vec![above.clone()];
    let mut all = Vec::new();
    while let Some(parent) = next.pop() {
        for child in by_parent.remove(&parent).unwrap_or_default() {
            if seen.insert(child.head.session.clone()) {
                next.push(child.head.session.clone());
                all.push(child);
            }
        }
    }
    all
}
