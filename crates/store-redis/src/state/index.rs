//! Indexes for lists and sweepers.
//!
//! In a cluster, indexes may be on other nodes than the sessions. So an entry is added before the
//! state that it points to is written, and removed after that state has changed: it may be stale,
//! but is never missing. The head is authoritative. An entry names the generation or the append that it
//! points to, so that its removal does not affect other entries.

use futures_util::future::try_join_all;
use redis::Cmd;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Append, NewSession};

use crate::keys::member;
use crate::settings::SCHEMA;
use crate::{Inner, script};

/// Returns the tag of the index entries of an append.
pub(super) fn tag(append: &Append) -> String {
    let version = append.expected.version.saturating_add(u64::from(append.count));
    format!("{version}\0{}", append.id)
}

/// Returns `true` if the entry with this tag points to an append that does not exist and never
/// will, because the log continued without it.
pub(super) fn is_stale(tag: &str, current: &str, version: u64) -> bool {
    let at = tag.split_once('\0').and_then(|(at, _)| at.parse::<u64>().ok());
    tag != current && at.is_some_and(|at| at <= version)
}

impl Inner {
    /// Adds a generation of a session to the indexes that list sessions. Returns the time of the entries.
    pub(super) async fn list_generation(
        &self,
        new: &NewSession,
        session: &SessionId,
        generation: &str,
        not_before: Timestamp,
    ) -> Result<Timestamp> {
        let member = member(session, generation);
        let not_before = not_before.0.to_string();
        let schema = SCHEMA.to_string();
        let keys = [self.keys.sessions(), self.keys.schema()];
        let args = [member.as_bytes(), not_before.as_bytes(), schema.as_bytes()];
        let at = self.server.eval(&script::INDEX, &keys, &args).await?.time()?;
        let tree = self.keys.of(&new.root).tree();
        self.server.run(redis::cmd("ZADD").arg(tree).arg(at.0).arg(&member)).await?;
        self.tag_generation(new, &member, at).await?;
        Ok(at)
    }

    /// Adds a generation of a session to the indexes of its tags.
    pub(super) async fn tag_generation(
        &self,
        new: &NewSession,
        member: &str,
        at: Timestamp,
    ) -> Result<()> {
        self.for_each_tag(new, |key| {
            let mut add = redis::cmd("ZADD");
            add.arg(key).arg(at.0).arg(member);
            add
        })
        .await
    }

    /// Removes a generation of a session from the indexes that list sessions.
    pub(super) async fn unlist_generation(
        &self,
        new: &NewSession,
        session: &SessionId,
        generation: &str,
    ) -> Result<()> {
        let member = member(session, generation);
        self.for_each_tag(new, |key| {
            let mut remove = redis::cmd("ZREM");
            remove.arg(key).arg(&member);
            remove
        })
        .await?;
        for key in [self.keys.of(&new.root).tree(), self.keys.sessions()] {
            self.server.run(redis::cmd("ZREM").arg(key).arg(&member)).await?;
        }
        Ok(())
    }

    /// Runs a command on the index of each tag of a session. The commands are pipelined.
    async fn for_each_tag(&self, new: &NewSession, command: impl Fn(String) -> Cmd) -> Result<()> {
        let commands: Vec<Cmd> =
            new.tags.iter().map(|(key, value)| command(self.keys.tagged(key, value))).collect();
        try_join_all(commands.iter().map(|command| self.server.run(command))).await.map(drop)
    }

    /// Adds index entries for the run and the wake time of an append that is about to be written.
    pub(super) async fn add_index_entries(&self, append: &Append) -> Result<()> {
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

    /// Removes an entry without a session: its creation failed, or its deletion was interrupted.
    /// Keeps a recent entry, because a session that is being created is added to the indexes first.
    pub(super) async fn drop_if_old(&self, key: &str, member: &str, time: &str) -> Result<()> {
        let args = [member.as_bytes(), time.as_bytes()];
        self.server.eval(&script::INDEX_DROP, &[key], &args).await.map(drop)
    }

    /// Removes the run entry with this tag.
    pub(super) async fn remove_run_entry(&self, session: &SessionId, tag: &str) -> Result<()> {
        self.remove(&self.keys.runs(), session, tag).await
    }

    /// Removes the wake time entry with this tag.
    pub(super) async fn remove_wake_entry(&self, session: &SessionId, tag: &str) -> Result<()> {
        self.remove(&self.keys.wakes(), session, tag).await
    }

    async fn remove(&self, key: &str, session: &SessionId, tag: &str) -> Result<()> {
        let mut remove: Cmd = redis::cmd("ZREM");
        self.server.run(remove.arg(key).arg(member(session, tag))).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
