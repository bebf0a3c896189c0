//! Forks: a head that names the log whose appends precede the fork's own. Nothing is copied.

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Append, ForkOutcome, NewSession, Position};

use super::head::{Found, Part};
use super::write::{CreationOutcome, ForkBase, generation};
use crate::error::not_found;
use crate::{Inner, script};

impl Inner {
    pub(super) async fn fork(
        &self,
        from: &SessionId,
        new: &NewSession,
        first: &Append,
    ) -> Result<ForkOutcome> {
        if let Some(outcome) = self.outcome_if_exists(first).await? {
            return Ok(outcome);
        }
        if from.check().is_err() {
            return Err(not_found(from));
        }
        let original = self.find(from).await?.ok_or_else(|| not_found(from))?;
        let Some(base) = base(original, &first.expected) else {
            return Ok(ForkOutcome::HistoryLost);
        };
        let generation = generation();
        // Record the shared parts before the fork exists: a record may be stale, but is never
        // missing.
        let outcome = match self.share(&base, &generation).await? {
            Some(at) => {
                let fork_base = ForkBase { base: base.clone(), at };
                Some(self.begin(new, first, &generation, &fork_base).await?)
            }
            None => None,
        };
        if let Some(CreationOutcome::Created(at)) = outcome {
            return Ok(ForkOutcome::Created { at });
        }
        self.release(&base, &generation).await?;
        match outcome {
            None => Ok(ForkOutcome::HistoryLost),
            Some(_) => Ok(self.outcome_if_exists(first).await?.unwrap_or(ForkOutcome::Exists)),
        }
    }

    /// Returns the outcome of a fork if its session already exists.
    async fn outcome_if_exists(&self, first: &Append) -> Result<Option<ForkOutcome>> {
        let Some(found) = self.find(&first.session).await? else { return Ok(None) };
        let at = first.expected.version;
        if found.base.last().map_or(0, |part| part.version) != at {
            return Ok(Some(ForkOutcome::Exists));
        }
        let next = self.read(&first.session, at, 1).await?;
        Ok(Some(match next.first() {
            Some(next) if next.first == at + 1 && next.id == first.id => {
                ForkOutcome::Created { at: next.at }
            }
            _ => ForkOutcome::Exists,
        }))
    }

    /// Records in every part that the session with this generation shares it. Returns the time of the
    /// last part's last append, or `None` if a part does not exist.
    async fn share(
        &self,
        base: &[Part],
        generation: &str,
    ) -> Result<Option<helix_agents_core::clock::Timestamp>> {
        let mut at = None;
        for part in base {
            let version = part.version.to_string();
            let args = [part.generation.as_str(), &version, part.append.as_str(), generation];
            let args = args.map(str::as_bytes);
            let keys = self.keys_of(part);
            let mut reply = self.server.eval(&script::SHARE, &keys, &args).await?;
            if reply.is_empty() {
                return Ok(None);
            }
            at = Some(reply.time()?);
        }
        Ok(at)
    }

    /// Records in every part that the session with this generation no longer shares it.
    pub(super) async fn release(&self, base: &[Part], generation: &str) -> Result<()> {
        for part in base {
            let args = [part.generation.as_bytes(), generation.as_bytes()];
            let keys = self.keys_of(part);
            self.server.eval(&script::RELEASE, &keys, &args).await?;
        }
        Ok(())
    }

    pub(super) fn keys_of(&self, part: &Part) -> [String; 5] {
        let keys = self.keys.of(&part.session);
        let (log, shares) = (keys.kept_log(&part.generation), keys.kept_shares(&part.generation));
        [keys.head(), keys.log(), keys.shares(), log, shares]
    }
}

/// Returns the parts that precede a fork at this position, or `None` if the log does not reach it.
fn base(original: Found, position: &Position) -> Option<Vec<Part>> {
    if position.version > original.head.position.version {
        return None;
    }
    let own = Part {
        session: original.head.session,
        generation: original.generation,
        version: u64::MAX,
        append: position.append.clone(),
    };
    let mut base = Vec::new();
    for part in original.base.into_iter().chain([own]) {
        if position.version <= part.version {
            let Position { version, append } = position.clone();
            base.push(Part { version, append, ..part });
            return Some(base);
        }
        base.push(part);
    }
    None
}
