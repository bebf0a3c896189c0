//! Retention: deletion of old sessions.

use std::collections::HashSet;

use helix_agents_core::error::Result;
use helix_agents_core::store::Purge;

use crate::Inner;
use crate::state::delete::below;
use crate::state::head::Found;

impl Inner {
    /// Purges old sessions, one tree at a time.
    pub(crate) async fn purge(&self, purge: &Purge) -> Result<u64> {
        let (mut purged, mut last, mut looked_at) = (0, None, HashSet::new());
        loop {
            let found = self.oldest(&mut last).await?;
            let Some(found) = found else { return Ok(purged) };
            for found in found {
                let head = &found.head;
                let is_selected = purge.statuses.contains(&head.summary.status);
                if is_selected
                    && purge.is_old(head)
                    && self.is_top(&found).await?
                    && looked_at.insert(head.session.clone())
                {
                    purged += self.purge_tree(purge, &found).await?;
                }
            }
        }
    }

    /// Returns `true` if a session is a root, or if its parent was deleted.
    async fn is_top(&self, found: &Found) -> Result<bool> {
        Ok(match &found.head.created.parent {
            None => true,
            Some(parent) => self.find(parent).await?.is_none(),
        })
    }

    /// Deletes a tree. The top is deleted first, and only if nothing has been appended to it in the
    /// meantime. A run below it that starts a child at that time fails, or the child is deleted, too.
    async fn purge_tree(&self, purge: &Purge, top: &Found) -> Result<u64> {
        let tree = self.members(&self.keys.of(&top.head.created.root).tree()).await?;
        if !tree.iter().all(|found| purge.is_old(&found.head)) {
            return Ok(0);
        }
        let below = below(tree, &top.head.session);
        if !self.delete_one(top, Some(top.head.position.version)).await? {
            return Ok(0);
        }
        let mut purged = 1;
        let mut deleted = HashSet::from([top.head.session.clone()]);
        for found in below.iter().rev() {
            purged += u64::from(self.delete_one(found, None).await?);
            deleted.insert(found.head.session.clone());
        }
        Ok(purged + self.delete_orphans(&top.head.created.root, deleted).await?)
    }
}
