//! Retention: forgetting what is old.

use std::collections::HashSet;

use helix_agents_core::error::Result;
use helix_agents_core::store::Purge;

use crate::Inner;
use crate::state::delete::below;
use crate::state::head::Found;

impl Inner {
    /// Tree by tree.
    pub(crate) async fn purge(&self, purge: &Purge) -> Result<u64> {
        let (mut purged, mut last, mut looked_at) = (0, None, HashSet::new());
        loop {
            let found = self.oldest(&mut last).await?;
            let Some(found) = found else { return Ok(purged) };
            for found in found {
                let head = &found.head;
                let is_meant = purge.statuses.contains(&head.summary.status);
                if is_meant
                    && purge.is_old(head)
                    && self.is_top(&found).await?
                    && looked_at.insert(head.session.clone())
                {
                    purged += self.purge_tree(purge, &found).await?;
                }
            }
        }
    }

    /// Whether a session is a root, or left of a tree whose upper part was deleted.
    async fn is_top(&self, found: &Found) -> Result<bool> {
        Ok(match &found.head.created.parent {
            None => true,
            Some(parent) => self.find(parent).await?.is_none(),
        })
    }

    /// The top goes first, and only if nothing was appended meanwhile: no run begins below it after that.
    async fn purge_tree(&self, purge: &Purge, top: &Found) -> Result<u64> {
        let tree = self.members(&self.keys.of(&top.head.created.root).tree()).await?;
        if !tree.iter().all(|it| purge.is_old(&it.head)) {
            return Ok(0);
        }
        let below = below(tree, &top.head.session);
        if !self.delete_one(top, Some(top.head.position.version)).await? {
            return Ok(0);
        }
        let mut purged = 1;
        for found in below.iter().rev() {
            purged += u64::from(self.delete_one(found, None).await?);
        }
        Ok(purged)
    }
}
