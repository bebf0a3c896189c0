//! Indexes: where lists and sweepers begin to look.
//!
//! They lie on other nodes of a cluster than the sessions, so an entry is written before what it tells of and removed
//! after: it may be stale, and is never missing. What holds says the head. An entry names what it tells of (a life, or
//! an append), so that removing one never removes another's.

use redis::Cmd;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Append, NewSession};

use crate::keys::member;
use crate::settings::SCHEMA;
use crate::{Inner, script};

/// The tag of the entries that tell of an append.
pub(super) fn tag(append: &Append) -> String {
    let version = append.expected.version.saturating_add(u64::from(append.count));
    format!("{version}\0{}", append.id)
}

/// Whether an entry with this tag tells of nothing, and never will: the log went on otherwise.
pub(super) fn is_stale(tag: &str, current: &str, version: u64) -> bool {
    let at = tag.split_once('\0').and_then(|(at, _)| at.parse::<u64>().ok());
    tag != current && at.is_some_and(|at| at <= version)
}

impl Inner {
    /// Writes a life of a session into the indexes that list it; answers since when it is there.
    pub(super) async fn list_life(
        &self,
        new: &NewSession,
        session: &SessionId,
        life: &str,
        not_before: Timestamp,
    ) -> Result<Timestamp> {
        let member = member(session, life);
        let not_before = not_before.0.to_string();
        let schema = SCHEMA.to_string();
        let keys = [self.keys.sessions(), self.keys.schema()];
        let args = [member.as_bytes(), not_before.as_bytes(), schema.as_bytes()];
        let at = self.server.eval(&script::INDEX, &keys, &args).await?.time()?;
        let tree = self.keys.of(&new.root).tree();
        self.server.run(redis::cmd("ZADD").arg(tree).arg(at.0).arg(&member)).await?;
        Ok(at)
    }

    /// Takes a life of a session out of the indexes that list it.
    pub(super) async fn unlist_life(
        &self,
        root: &SessionId,
        session: &SessionId,
        life: &str,
    ) -> Result<()> {
        let member = member(session, life);
        for key in [self.keys.of(root).tree(), self.keys.sessions()] {
            self.server.run(redis::cmd("ZREM").arg(key).arg(&member)).await?;
        }
        Ok(())
    }

    /// Writes what an append is about to tell of run and wake-up time.
    pub(super) async fn announce(&self, append: &Append) -> Result<()> {
        let Some(summary) = &append.summary else { return Ok(()) };
        let member = member(&append.session, &tag(append));
        if summary.run.is_some() {
            let keys = [self.keys.runs()];
            self.server.eval(&script::INDEX_RUN, &keys, &[member.as_bytes()]).await?;
        }
        if let Some(at) = summary.wake_at {
            let mut add = redis::cmd("ZADD");
            self.server.run(add.arg(self.keys.wakes()).arg(at.0).arg(&member)).await?;
        }
        Ok(())
    }

    /// Removes an entry that leads to no session: its creation failed, or a deletion was stopped in the middle. A young
    /// one stays, because a session that is being created is in the indexes first.
    pub(super) async fn drop_if_old(&self, key: &str, member: &str, time: &str) -> Result<()> {
        let args = [member.as_bytes(), time.as_bytes()];
        self.server.eval(&script::INDEX_DROP, &[key], &args).await.map(drop)
    }

    /// Removes the entries of that tag.
    pub(super) async fn withdraw_run(&self, session: &SessionId, tag: &str) -> Result<()> {
        self.remove(&self.keys.runs(), session, tag).await
    }

    /// Likewise, of the time to wake up.
    pub(super) async fn withdraw_wake(&self, session: &SessionId, tag: &str) -> Result<()> {
        self.remove(&self.keys.wakes(), session, tag).await
    }

    async fn remove(&self, key: &str, session: &SessionId, tag: &str) -> Result<()> {
        let mut remove: Cmd = redis::cmd("ZREM");
        self.server.run(remove.arg(key).arg(member(session, tag))).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
