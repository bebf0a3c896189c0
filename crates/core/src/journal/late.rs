//! Late results: results that arrive after another run has taken over.

use super::batch::{Batch, Origin, target};
use super::observer::Appended;
use super::{Journal, MAX_CONFLICTS, log_events};
use crate::clock::IdSourceExt as _;
use crate::error::{ErrorCode, Result};
use crate::event::{Event, SCHEMA};
use crate::id::CallId;
use crate::message::ToolCall;
use crate::store::{Append, AppendOutcome, Guard, LeaseChange, StoredAppend};

/// A result that a superseded run has not recorded yet.
struct LateResult {
    event: Event,
    /// The call that this run executed.
    call: Option<ToolCall>,
}

impl Journal {
    /// Applies what others appended and rebases the staged events. If another run has taken over,
    /// this method first appends the results of calls that are still open, then returns the error.
    /// Without these results, the successor would not know the outcome of those effects.
    pub(super) async fn absorb(&mut self, missed: &[StoredAppend], decides: bool) -> Result<()> {
        let started = |call: &CallId| {
            let is_start =
                |event: &Event| matches!(event, Event::ChildStarted(start) if start.call == *call);
            self.staged().iter().any(is_start)
        };
        // The result of a call that started a companion is useless without the start event, and
        // only the owner records starts. The successor calls the tool again and finds the
        // companion.
        let ran = |event: &&Event| match event {
            Event::ToolFinished(finish) => finish.attempts > 0 && !started(&finish.call),
            _ => false,
        };
        let results = self.staged().iter().filter(ran);
        let results: Vec<_> = results.cloned().map(|event| self.late_result(event)).collect();
        let rebased = self.rebase(missed, decides);
        let superseded = rebased.as_ref().is_err_and(|error| error.code() == ErrorCode::Superseded);
        if superseded && let Err(error) = self.append_late_results(results).await {
            tracing::debug!(%error, run = %self.run, "a late result could not be recorded");
        }
        rebased
    }

    fn late_result(&self, event: Event) -> LateResult {
        let call = match &event {
            Event::ToolFinished(finish) => self.session().tool_call(&finish.call).cloned(),
            _ => None,
        };
        LateResult { event, call }
    }

    /// Returns `true` if the successor has the same call and needs the result. If the reply of this
    /// run was never recorded, or was removed by a rewind, the id may be that of another call. If the
    /// successor has started a child for the call, the result comes from the child.
    fn accepts(&self, LateResult { event, call }: &LateResult) -> bool {
        let Some(call) = call else { return false };
        let current = self.session().tool_call(&call.id);
        let is_same = current.is_some_and(|current| {
            current.name == call.name && current.arguments == call.arguments
        });
        let mut open_children = self.session().open_children();
        let has_child = open_children.any(|child| child.call == call.id);
        is_same && !has_child && self.session().check(event, Some(&self.run), false).is_ok()
    }

    /// Appends facts only. Head and lease belong to the successor.
    async fn append_late_results(&mut self, mut results: Vec<LateResult>) -> Result<()> {
        let mut attempts = MAX_CONFLICTS;
        loop {
            results.retain(|result| self.accepts(result));
            let mut batch = Batch::default();
            for LateResult { event, .. } in &results {
                batch.push(event, Origin::Fact)?;
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
                id: self.config.ids.append(),
                run: Some(self.run.clone()),
                schema: SCHEMA,
                count: u32::try_from(batch.events().len()).unwrap_or(u32::MAX),
                body: batch.take_body(),
                summary: None,
                usage: Some(after.stored_usage()),
                lease: LeaseChange::Keep,
                guard: Guard::None,
            };
            let (session, id) = (self.iterator.session_mut(), append.id.clone());
            match self.config.store.append(append).await? {
                AppendOutcome::Appended { at } => {
                    let after = session.position().version;
                    let events = batch.into_events();
                    results.drain(..events.len());
                    for event in &events {
                        session.apply(event, Some(&self.run))?;
                    }
                    session.acknowledge(id, at);
                    let appended = Appended { events: &events, after, at, run: &self.run };
                    log_events::recorded(self.iterator.session(), &self.run, &events);
                    self.config.observers.recorded(self.iterator.session(), appended);
                }
                AppendOutcome::Conflict { missed } if attempts > 0 => {
                    attempts -= 1;
                    missed.iter().try_for_each(|append| session.apply_append(append))?;
                }
                _ => return Ok(()),
            }
        }
    }
}
