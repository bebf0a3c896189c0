//! Results that come after another run took over.

use super::batch::{Batch, target};
use super::{Journal, MAX_CONFLICTS};
use crate::error::{ErrorCode, Result};
use crate::event::{Event, SCHEMA};
use crate::id::CallId;
use crate::store::{Append, AppendOutcome, Guard, LeaseChange, StoredAppend};

impl Journal {
    /// Puts the fold onto what others appended. If another run has taken over, results of calls
    /// that are still open are handed in before this run is told: they are the truth about effects
    /// that its successor would have to doubt.
    pub(super) async fn take_in(&mut self, missed: &[StoredAppend], decides: bool) -> Result<()> {
        let started = |call: &CallId| {
            let is_start =
                |event: &Event| matches!(event, Event::ChildStarted(it) if it.call == *call);
            self.staged().iter().any(is_start)
        };
        // The result of a call that started a companion is worth nothing without the start, and only the owner records
        // starts. The successor calls the tool again, and finds the companion.
        let ran = |event: &&Event| match event {
            Event::ToolFinished(finish) => finish.attempts > 0 && !started(&finish.call),
            _ => false,
        };
        let results: Vec<_> = self.staged().iter().filter(ran).cloned().collect();
        let rebased = self.rebase(missed, decides);
        let superseded = rebased.as_ref().is_err_and(|error| error.code() == ErrorCode::Superseded);
        if superseded && let Err(error) = self.hand_in(results).await {
            tracing::debug!(%error, run = %self.run, "a late result could not be handed in");
        }
        rebased
    }

    /// Appends facts and nothing else: head and lease are the successor's.
    async fn hand_in(&mut self, mut results: Vec<Event>) -> Result<()> {
        let mut tries = MAX_CONFLICTS;
        loop {
            results.retain(|event| self.session().check(event, Some(&self.run), false).is_ok());
            let mut batch = Batch::default();
            for event in &results {
                batch.push(event)?;
                if batch.bytes() > target(self.limit) && batch.events().len() > 1 {
                    batch.pop();
                    break;
                }
            }
            if batch.is_empty() {
                return Ok(());
            }
            let mut after = self.session().overview().clone();
            for event in batch.events() {
                after.apply(event, Some(&self.run))?;
            }
            let append = Append {
                session: self.session().id().clone(),
                expected: self.session().position().clone(),
                id: self.parts.ids.append(),
                run: Some(self.run.clone()),
                schema: SCHEMA,
                count: u32::try_from(batch.events().len()).unwrap_or(u32::MAX),
                body: batch.take_body(),
                summary: None,
                usage: Some(after.own_usage().bounded()),
                lease: LeaseChange::Keep,
                guard: Guard::None,
            };
            let (session, id) = (self.iterator.session_mut(), append.id.clone());
            match self.parts.store.append(append).await? {
                AppendOutcome::Appended { at } => {
                    for event in results.drain(..batch.events().len()) {
                        session.apply(&event, Some(&self.run))?;
                    }
                    session.settle(id, at);
                }
                AppendOutcome::Conflict { missed } if tries > 0 => {
                    tries -= 1;
                    missed.iter().try_for_each(|append| session.apply_append(append))?;
                }
                _ => return Ok(()),
            }
        }
    }
}
