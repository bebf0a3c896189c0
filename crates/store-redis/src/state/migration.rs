//! The migration of data with an older schema.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use helix_agents_core::error::Result;

use crate::settings::SCHEMA;
use crate::{Inner, keys};

/// The number of sessions whose tags are added concurrently.
const AT_ONCE: usize = 64;

impl Inner {
    /// Adds all sessions to the indexes of their tags, which schema 1 did not have, and then records
    /// the schema version. The migration can be repeated, and several processes can do it at once.
    ///
    /// A session that is deleted meanwhile may leave stale entries, as an interrupted deletion does.
    pub(crate) async fn migrate(&self) -> Result<()> {
        let mut last = None;
        while let Some(found) = self.newest(&mut last).await? {
            let tagged = stream::iter(found).map(|found| async move {
                let member = keys::member(&found.head.session, &found.generation);
                self.tag_generation(&found.head.created, &member, found.head.created_at).await
            });
            tagged.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        }
        self.server.run(redis::cmd("SET").arg(self.keys.schema()).arg(SCHEMA)).await.map(drop)
    }
}
