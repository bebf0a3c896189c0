//! Results that come after another run took over.

use super::{Journal, MAX_CONFLICTS};
use crate::error::{ErrorCode, Result};
use crate::event::{Event, SCHEMA, encode};
use crate::store::{Append, AppendOutcome, Guard, LeaseChange, StoredAppend};

impl Journal {
    /// Puts the fold onto what others appended. If another run has taken over, results of calls
    /// that are still open are handed in before this run is told: they are the truth about effects
    /// that its successor would have to doubt.
    pub(super) async fn take_in(&mut self, missed: &[StoredAppend], decides: bool) -> Result<()> {
        let ran = |event: &&Event| matches!(event, Event::ToolFinished(it) if it.attempts > 0);
        let results: Vec<_> = self.held.iter().filter(ran).cloned().collect();
        let rebased = self.rebase(missed, decides);
        let superseded = rebased.as_ref().is_err_and(|error| error.code() == ErrorCode::Superseded);
        if superseded && let Err(error) = self.hand_in(results).await {
            tracing::debug!(%error, run = %self.run, "a late result could not be handed in");
        }
        rebased
    }

    /// Appends facts and nothing else: head and lease are the successor's.
    async fn hand_in(&mut self, mut results: Vec<Event>) -> Result<()> {
        for _ in 0..MAX_CONFLICTS {
            results.retain(|event| self.session().check(event, Some(&self.run), false).is_ok());
            if results.is_empty() {
                return Ok(());
            }
            let append = Append {
                session: self.session().id().clone(),
                expected: self.session().position().clone(),
                id: self.parts.ids.append(),
                run: Some(self.run.clone()),
                schema: SCHEMA,
                count: u32::try_from(results.len()).unwrap_or(u32::MAX),
                body: encode(&results)?,
                summary: None,
                lease: LeaseChange::Keep,
                guard: Guard::None,
            };
            let AppendOutcome::Conflict { missed } = self.parts.store.append(append).await? else {
                return Ok(());
            };
            for append in &missed {
                self.iterator.session_mut().apply_append(append)?;
            }
        }
        Ok(())
    }
}
