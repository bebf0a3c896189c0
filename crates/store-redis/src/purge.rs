//! Retention: forgetting what is old.

use std::collections::HashSet;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::Purge;

use crate::Inner;
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
                let root = &head.created.root;
                // What is left of a tree whose root was forgotten when somebody was stopped.
                let is_left = head.created.parent.is_some() && self.find(root).await?.is_none();
                let is_top = head.created.parent.is_none() || is_left;
                let is_meant = is_top && purge.statuses.contains(&head.summary.status);
                if is_meant && purge.is_old(head) && looked_at.insert(head.session.clone()) {
                    purged += self.purge_tree(purge, &found).await?;
                }
            }
        }
    }

    /// The top goes first, and only if nothing was appended meanwhile: nobody begins a run below it after that.
    async fn purge_tree(&self, purge: &Purge, top: &Found) -> Result<u64> {
        let below = self.descendants(top).await?;
        if !below.iter().all(|it| purge.is_old(&it.head)) {
            return Ok(0);
        }
        if !self.delete_one(top, Some(top.head.position.version)).await? {
            return Ok(0);
        }
        self.forget_stream(&top.head.session).await?;
        let mut purged = 1;
        for found in below.iter().rev() {
            purged += u64::from(self.delete_one(found, None).await?);
            self.forget_stream(&found.head.session).await?;
        }
        Ok(purged)
    }

    /// Forgets a stream with the numbers that it would go on from.
    async fn forget_stream(&self, session: &SessionId) -> Result<()> {
        let [feed, chunks, discarded, marks, _] = self.keys.of(session).stream();
        let keys = [feed, chunks, discarded, marks];
        self.server.run(redis::cmd("UNLINK").arg(&keys)).await.map(drop)
    }
}
