//! One tool call, as an effect: tries, timeouts, panics, starts on record, calls in doubt.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::event::{Event, ToolFinish, ToolOutcome};
use helix_agents_core::fault;
use helix_agents_core::hooks::{HookChain, HookContext, HookPlace, HookPoint, ToolCallView};
use helix_agents_core::json::Json;
use helix_agents_core::message::ToolCall;
use helix_agents_core::mutant;
use helix_agents_core::panics::caught_async;
use helix_agents_core::session::end_of_call;
use helix_agents_core::state::Patch;
use helix_agents_core::step::CallTask;
use helix_agents_core::stream::{ChunkKind, Effect};
use helix_agents_core::tool::{
    Reconciled, Tool, ToolContext, ToolContextParts, ToolError, judge, settle,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::feed::{CallFeed, Feed, Ticket};
use crate::in_tool::in_tool;
use crate::ownership::{Left, Ownership};
use crate::starts::Starts;

/// Everything that one call needs; owned, so that calls run beside the journal.
#[derive(Debug)]
pub struct CallRun {
    pub(crate) agent: AnyAgent,
    pub(crate) tool: Arc<Tool>,
    pub(crate) call: ToolCall,
    pub(crate) input: Json,
    pub(crate) task: CallTask,
    pub(crate) place: HookPlace,
    pub(crate) state: Arc<Value>,
    pub(crate) feed: Feed,
    pub(crate) hooks: HookChain,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) cancel: CancellationToken,
    pub(crate) timeout: Duration,
    /// How long an earlier owner, slow and not dead, may still be at it.
    pub(crate) doubt: Duration,
    pub(crate) fencing_token: u64,
    pub(crate) ownership: Ownership,
    pub(crate) starts: Starts,
}

/// A call that has its result.
#[derive(Debug)]
pub struct CallEnd {
    tool: Arc<str>,
    finish: Arc<ToolFinish>,
    usage: Vec<(String, f64)>,
    /// The last try at it.
    pub ticket: Ticket,
}

/// What came of one try.
struct Try {
    outcome: ToolOutcome,
    /// Whether trying again may help.
    passing: bool,
    patch: Patch,
    input: Option<Json>,
    usage: Vec<(String, f64)>,
}

impl Try {
    fn failed(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            outcome: ToolOutcome::Error(ErrorRecord::new(code, message)),
            passing: false,
            patch: Patch::default(),
            input: None,
            usage: Vec::new(),
        }
    }
}

/// What a try needs to call the tool.
struct Prepared {
    context: ToolContext,
    /// The arguments, if a hook changed them.
    changed: Option<Json>,
    /// What the hooks before it changed of the state.
    before: Patch,
}

impl CallRun {
    /// Runs the call until it has its one result. `None` if it did not run, because it was cancelled
    /// before or another process runs it.
    ///
    /// Nothing of it happens before the run is surely this process's: a call may have waited in a queue while
    /// the process stood still.
    pub async fn carry_out(self) -> Option<CallEnd> {
        if !self.is_owned(Left::Some).await {
            return None;
        }
        let begun = self.clock.monotonic();
        let mut attempt_number = self.task.attempt;
        let mut retry = 0;
        let (ticket, done) = loop {
            let effect = Effect::Tool { call: self.call.id.clone() };
            let ticket = self.feed.begin(self.place.step, effect);
            self.show(
                ticket,
                ChunkKind::ToolStart {
                    call: self.call.id.clone(),
                    tool: Arc::clone(&self.call.name),
                    arguments: self.input.text().to_owned(),
                },
            );
            let Some(done) = self.one_try(attempt_number, ticket).await else {
                self.feed.abandon(self.place.step, &[ticket]);
                return None;
            };
            let again = if done.passing { self.wait_before_retry(retry) } else { None };
            let Some(wait) = again else { break (ticket, done) };
            retry += 1;
            attempt_number += 1;
            self.clock.sleep(wait).await;
        };
        self.show_end(ticket, &done.outcome);
        let took = self.clock.monotonic().saturating_sub(begun);
        let finish = ToolFinish {
            call: self.call.id.clone(),
            outcome: done.outcome,
            finish: None,
            input: done.input,
            state_patch: done.patch,
            took_ms: millis(took),
            attempts: attempt_number,
            child: None,
        };
        let finish = Arc::new(settle(&self.agent, &self.tool, finish));
        Some(CallEnd { tool: self.call.name, finish, usage: done.usage, ticket })
    }

    /// One try. `None` if the tool was not called, because the call is not this process's to run.
    async fn one_try(&self, number: u32, ticket: Ticket) -> Option<Try> {
        let cancel = self.cancel.child_token();
        let mut left = self.timeout;
        let prepare = self.prepare(number, ticket, cancel.clone());
        let prepared = match self.within(&mut left, &cancel, prepare).await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(done)) | Err(done) => return Some(done),
        };
        let input = prepared.changed.as_ref().unwrap_or(&self.input);
        if self.task.in_doubt {
            // The owner before may be slow and not dead. To wait for it is not the call's own time.
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return None,
                () = self.clock.sleep(self.doubt) => {}
            }
            let reconcile = self.reconcile(input.to_value(), &prepared.context);
            match self.within(&mut left, &cancel, reconcile).await {
                Ok(Ok(result)) => return Some(self.ended(prepared, Ok(result))),
                Ok(Err(None)) => {}
                Ok(Err(Some(message))) => {
                    return Some(Try::failed(ErrorCode::ToolOutcomeUnknown, message));
                }
                Err(done) => return Some(done),
            }
        }
        if !self.starts().await {
            return None;
        }
        let invoke = async {
            fault::point("tool.before");
            let returned = in_tool(self.tool.invoke(input, prepared.context.clone())).await;
            fault::point("tool.after");
            returned
        };
        Some(match self.within(&mut left, &cancel, invoke).await {
            Ok(returned) => self.ended(prepared, returned),
            Err(done) => done,
        })
    }

    /// Waits until the run is this process's and, if the call must not run twice, its start is on record.
    /// Returns `true` if it is to run.
    async fn starts(&self) -> bool {
        if !self.task.at_most_once || mutant!("start-not-recorded") {
            return self.is_owned(Left::Some).await;
        }
        let call = self.task.call.clone();
        let start = Event::ToolStarted {
            call: call.clone(),
            attempt: self.task.attempt,
            timeout_ms: Some(millis(self.timeout)),
        };
        let is_recorded = tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            is_recorded = self.starts.recorded(call, start) => is_recorded,
        };
        is_recorded && self.is_owned(Left::Half).await
    }

    /// Waits until so much of the lease is left. Returns `false` if the call was cancelled.
    async fn is_owned(&self, left: Left) -> bool {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            () = self.ownership.holds(left) => true,
        }
    }

    /// Does a part of a try within what is left of its time.
    ///
    /// # Errors
    /// What the try came to if the part panicked, or took longer.
    async fn within<T>(
        &self,
        left: &mut Duration,
        cancel: &CancellationToken,
        part: impl Future<Output = T> + Send,
    ) -> Result<T, Try> {
        let begun = self.clock.monotonic();
        let ended = tokio::time::timeout(*left, caught_async("the tool", || part)).await;
        *left = left.saturating_sub(self.clock.monotonic().saturating_sub(begun));
        match ended {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(panic)) => {
                tracing::error!(tool = %self.call.name, call = %self.call.id, "the tool panicked");
                Err(Try::failed(ErrorCode::ToolPanicked, panic.in_full()))
            }
            Err(_) => {
                cancel.cancel();
                let message = format!("the tool did not finish within {:?}", self.timeout);
                let mut done = Try::failed(ErrorCode::ToolTimeout, message);
                done.passing = true;
                Err(done)
            }
        }
    }

    /// Has the hooks told that come before the tool.
    ///
    /// # Errors
    /// What the try came to if the tool is not to be called.
    async fn prepare(
        &self,
        number: u32,
        ticket: Ticket,
        cancel: CancellationToken,
    ) -> Result<Prepared, Try> {
        let point = HookPoint::Of("before_tool", self.call.id.clone());
        let cx = HookContext::new(&self.place, point, Arc::clone(&self.state));
        let view = ToolCallView { call: &self.call.id, tool: &self.call.name, input: &self.input };
        let changed = match self.hooks.before_tool(&cx, view).await {
            Ok(changed) => changed,
            Err(reason) => {
                return Err(Try::failed(ErrorCode::ToolRefused, format!("not run: {reason}")));
            }
        };
        if let Some(changed) = &changed
            && let Err(violations) = self.tool.validate(&changed.to_value())
        {
            let message = format!("a hook's arguments do not fit: {}", violations.join("; "));
            return Err(Try::failed(ErrorCode::ToolInputInvalid, message));
        }
        let before = cx.changes();
        let mut state = Arc::clone(&self.state);
        if !before.is_empty() {
            before.apply(Arc::make_mut(&mut state));
        }
        let context = self.context(number, ticket, cancel, state);
        Ok(Prepared { context, changed, before })
    }

    /// What a try came to that returned.
    fn ended(&self, prepared: Prepared, returned: Result<Json, ToolError>) -> Try {
        let Prepared { context, changed, before } = prepared;
        let effects = context.effects();
        let passing = returned.as_ref().is_err_and(|error| error.is_retryable());
        Try {
            outcome: judge(&self.agent, &self.tool, returned),
            passing,
            patch: before.then(effects.state_patch),
            input: changed,
            usage: effects.usage,
        }
    }

    /// Finds out about a call that must not run twice. `Err(None)`: it did not act, run it.
    async fn reconcile(&self, input: Value, cx: &ToolContext) -> Result<Json, Option<String>> {
        let found = match self.tool.reconciler() {
            Some(reconcile) => reconcile(input, cx.clone()).await,
            None => Reconciled::Unknown,
        };
        match found {
            Reconciled::Landed(result) => Json::from_serialize(&result)
                .map_err(|error| Some(format!("what `reconcile` found is not JSON: {error}"))),
            Reconciled::DidNotHappen => Err(None),
            Reconciled::Unknown => Err(Some(
                "the process stopped while this call ran, and whether it acted is not known; it \
                 was not run again"
                    .to_owned(),
            )),
        }
    }

    fn context(
        &self,
        number: u32,
        ticket: Ticket,
        cancel: CancellationToken,
        state: Arc<Value>,
    ) -> ToolContext {
        let feed = CallFeed { feed: self.feed.clone(), ticket, step: self.place.step };
        ToolContext::new(ToolContextParts {
            agent: Arc::clone(&self.place.agent),
            session: self.place.session.clone(),
            run: self.place.run.clone(),
            fencing_token: self.fencing_token,
            step: self.place.step,
            call: self.call.id.clone(),
            tool: self.tool.name().into(),
            arguments: self.input.text().to_owned(),
            attempt: number,
            timeout: Some(self.timeout),
            cancel,
            state,
            feed: Arc::new(feed),
        })
    }

    fn wait_before_retry(&self, retry: u32) -> Option<Duration> {
        let jitter = u64::try_from(self.ids.next() & u128::from(u32::MAX)).unwrap_or(0);
        self.tool.retry_policy()?.backoff(retry, jitter)
    }

    fn show(&self, ticket: Ticket, kind: ChunkKind) {
        self.feed.show(Some(ticket), self.place.step, kind);
    }

    fn show_end(&self, ticket: Ticket, outcome: &ToolOutcome) {
        for kind in end_of_call(&self.call, outcome) {
            self.show(ticket, kind);
        }
    }
}

impl CallEnd {
    /// The facts of it, in order.
    pub fn facts(&self) -> impl Iterator<Item = Event> {
        let usage = self.usage.iter().map(|(name, amount)| Event::UsageRecorded {
            source_type: format!("tool:{}", self.tool),
            source_name: name.clone(),
            amount: *amount,
            call: Some(self.finish.call.clone()),
            success: matches!(self.finish.outcome, ToolOutcome::Success(_)),
        });
        usage.chain(std::iter::once(Event::ToolFinished(Arc::clone(&self.finish))))
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
