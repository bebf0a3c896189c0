//! Executes one tool call, with retries, timeouts and panic handling. A call is *in doubt* if it may have started but
//! the log has no result of it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::clock::{Clock, IdSource};
use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::event::{Event, ToolFinish, ToolOutcome};
use helix_agents_core::fault;
use helix_agents_core::hooks::{HookCall, HookContext, HookScope, ToolCallView};
use helix_agents_core::json::Json;
use helix_agents_core::message::{Media, ToolCall};
use helix_agents_core::panics::caught_async;
use helix_agents_core::session::{end_of_call, recordable_result};
use helix_agents_core::state::Patch;
use helix_agents_core::step::{CallTask, complete_record, to_outcome};
use helix_agents_core::stream::{ChunkKind, Effect};
use helix_agents_core::tool::{ReconcileOutcome, Tool, ToolContext, ToolContextConfig, ToolError};
use helix_agents_core::trace::TraceParent;
use serde_json::Value;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::hook_chain::HookChain;
use crate::in_tool::in_tool;
use crate::lease_view::{LeaseMargin, LeaseView};
use crate::start_queue::StartQueue;
use crate::store_clock::StoreClock;
use crate::stream_writer::{AttemptHandle, CallStream, StreamWriter};

mod at_most_once;

/// A tool call that is ready to run. It owns all its data, so that calls run concurrently with the journal.
#[derive(Debug)]
pub struct CallRun {
    pub(crate) agent: AnyAgent,
    pub(crate) tool: Arc<Tool>,
    pub(crate) call: ToolCall,
    pub(crate) input: Json,
    pub(crate) task: CallTask,
    pub(crate) place: HookScope,
    pub(crate) state: Arc<Value>,
    pub(crate) stream_writer: StreamWriter,
    pub(crate) hooks: HookChain,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) cancel: CancellationToken,
    pub(crate) timeout: Duration,
    /// The wait before a call in doubt continues, because its earlier owner may still execute it.
    pub(crate) doubt: Duration,
    /// The time within which an at-most-once call must begin after it requested that its start is recorded. Another
    /// worker waits for this time plus the timeout before it considers the call ended.
    pub(crate) start_window: Duration,
    pub(crate) fencing_token: u64,
    /// The maximum size of an append, which a result must not exceed.
    pub(crate) max_append_bytes: usize,
    pub(crate) lease_view: LeaseView,
    pub(crate) starts: StartQueue,
    /// The clock for the end time, if the result is not appended immediately.
    pub(crate) end_clock: Option<StoreClock>,
    pub(crate) trace: TraceParent,
}

/// A completed tool call with its result.
#[derive(Debug)]
pub struct CallEnd {
    tool: Arc<str>,
    finish: Arc<ToolFinish>,
    usage: Vec<(String, f64)>,
    /// The last attempt of the call.
    pub attempt: AttemptHandle,
}

/// The outcome of one attempt.
struct AttemptOutcome {
    outcome: ToolOutcome,
    /// `true` if a retry may succeed.
    is_transient: bool,
    patch: Patch,
    input: Option<Json>,
    usage: Vec<(String, f64)>,
    attachments: Vec<Media>,
}

impl AttemptOutcome {
    fn failed(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            outcome: ToolOutcome::Error(ErrorRecord::new(code, message)),
            is_transient: false,
            patch: Patch::default(),
            input: None,
            usage: Vec::new(),
            attachments: Vec::new(),
        }
    }
}

/// The inputs of a tool invocation after the hooks ran.
struct Prepared {
    context: ToolContext,
    /// The changed arguments, if a hook changed them.
    changed: Option<Json>,
    /// The state changes of the hooks that ran before the tool.
    before: Patch,
}

impl CallRun {
    /// Runs the call to completion. Returns `None` if the call was cancelled before an attempt, or if another process
    /// runs it.
    ///
    /// Nothing happens before ownership of the run is confirmed: the call may have waited in a queue while the
    /// process was paused.
    pub async fn drive(self) -> Option<CallEnd> {
        if !self.is_owned(LeaseMargin::Third).await {
            return None;
        }
        let started = self.clock.monotonic();
        let mut attempt_number = self.task.attempt;
        let mut retry = 0;
        let (attempt, done) = loop {
            let effect = Effect::Tool { call: self.call.id.clone() };
            let attempt = self.stream_writer.start_attempt(self.place.step, effect);
            self.show(
                attempt,
                ChunkKind::ToolStart {
                    call: self.call.id.clone(),
                    tool: Arc::clone(&self.call.name),
                    arguments: self.input.text().to_owned(),
                    client: false,
                },
            );
            let Some(done) = self.run_attempt(attempt_number, attempt).await else {
                self.stream_writer.discard(self.place.step, &[attempt]);
                return None;
            };
            let again = if done.is_transient { self.wait_before_retry(retry) } else { None };
            let Some(wait) = again else { break (attempt, done) };
            retry += 1;
            attempt_number += 1;
            self.clock.sleep(wait).await;
        };
        let ended = self.clock.monotonic();
        let finish = ToolFinish {
            call: self.call.id.clone(),
            outcome: done.outcome,
            finish: None,
            input: done.input,
            attachments: done.attachments,
            state_patch: done.patch,
            took_ms: millis(ended.saturating_sub(started)),
            ended: self.end_clock.map(|clock| clock.at(ended)),
            attempts: attempt_number,
            child: None,
        };
        let finish = Arc::new(complete_record(&self.agent, &self.tool, finish));
        let finish = recordable_result(finish, self.max_append_bytes);
        self.show_end(attempt, &finish.outcome);
        Some(CallEnd { tool: self.call.name, finish, usage: done.usage, attempt })
    }

    /// Makes one attempt. Returns `None` if the tool was not called because this process must not run the call.
    async fn run_attempt(&self, number: u32, attempt: AttemptHandle) -> Option<AttemptOutcome> {
        let cancel = self.cancel.child_token();
        // The timeout covers the hooks, the reconciler and the tool, but not the waits between them.
        let mut remaining = self.timeout;
        let prepared = if self.hooks.is_empty() {
            let context = self.context(number, attempt, cancel.clone(), Arc::clone(&self.state));
            Prepared { context, changed: None, before: Patch::default() }
        } else {
            let prepare = Box::pin(self.prepare(number, attempt, cancel.clone()));
            match self.with_timeout(&mut remaining, &cancel, prepare).await {
                Ok(Ok(prepared)) => prepared,
                Ok(Err(done)) | Err(done) => return Some(done),
            }
        };
        let input = prepared.changed.as_ref().unwrap_or(&self.input);
        if self.task.in_doubt {
            // The earlier owner may be slow but alive. Waiting for it does not count towards the call's timeout.
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return None,
                () = self.clock.sleep(self.doubt) => {}
            }
            let reconcile = self.reconcile(input.to_value(), &prepared.context);
            match self.with_timeout(&mut remaining, &cancel, reconcile).await {
                Ok(Ok(result)) => return Some(self.ended(prepared, Ok(result))),
                Ok(Err(None)) => {}
                Ok(Err(Some(message))) => {
                    return Some(AttemptOutcome::failed(ErrorCode::ToolOutcomeUnknown, message));
                }
                Err(done) => return Some(done),
            }
        }
        if !self.may_start().await {
            return None;
        }
        let invoke = async {
            fault::point("tool.before");
            let returned = in_tool(self.tool.invoke(input, prepared.context.clone())).await;
            fault::point("tool.after");
            returned
        };
        Some(match self.with_timeout(&mut remaining, &cancel, invoke).await {
            Ok(returned) => self.ended(prepared, returned),
            Err(done) => done,
        })
    }

    /// Waits until at least this fraction of the lease remains. Returns `false` if the call was cancelled.
    async fn is_owned(&self, margin: LeaseMargin) -> bool {
        if self.cancel.is_cancelled() {
            return false;
        }
        // Nearly every call finds enough of the lease left.
        if self.lease_view.has(margin) {
            return true;
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            () = self.lease_view.wait_for_margin(margin) => true,
        }
    }

    /// Runs a part of an attempt within the remaining time of the call.
    ///
    /// # Errors
    /// Returns a failed attempt if the part panicked or timed out.
    async fn with_timeout<T>(
        &self,
        remaining: &mut Duration,
        cancel: &CancellationToken,
        work: impl Future<Output = T> + Send,
    ) -> Result<T, AttemptOutcome> {
        // Pinned here, because `timeout` would otherwise move the whole future.
        let work = pin!(work);
        let work = pin!(caught_async("the tool", || work));
        let started = Instant::now();
        let done = timeout(*remaining, work).await;
        *remaining = remaining.saturating_sub(started.elapsed());
        match done {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(panic)) => {
                tracing::error!(tool = %self.call.name, call = %self.call.id, "the tool panicked");
                Err(AttemptOutcome::failed(ErrorCode::ToolPanicked, panic.in_full()))
            }
            Err(_) => {
                cancel.cancel();
                let message = format!("the tool did not finish within {:?}", self.timeout);
                let mut done = AttemptOutcome::failed(ErrorCode::ToolTimeout, message);
                done.is_transient = true;
                Err(done)
            }
        }
    }

    /// Calls the hooks that run before the tool.
    ///
    /// # Errors
    /// Returns a failed attempt if the tool must not be called.
    async fn prepare(
        &self,
        number: u32,
        attempt: AttemptHandle,
        cancel: CancellationToken,
    ) -> Result<Prepared, AttemptOutcome> {
        let point = HookCall::PerCall("before_tool", self.call.id.clone());
        let cx = HookContext::new(&self.place, point, Arc::clone(&self.state));
        let view = ToolCallView::new(&self.call.id, &self.call.name, &self.input);
        let changed = match self.hooks.before_tool(&cx, view).await {
            Ok(changed) => changed,
            Err(reason) => {
                return Err(AttemptOutcome::failed(
                    ErrorCode::ToolRefused,
                    format!("not run: {reason}"),
                ));
            }
        };
        if let Some(changed) = &changed
            && let Err(violations) = self.tool.validate(&changed.to_value())
        {
            let message = format!(
                "the arguments that a hook changed do not match the schema: {}",
                violations.join("; ")
            );
            return Err(AttemptOutcome::failed(ErrorCode::ToolInputInvalid, message));
        }
        let before = cx.changes();
        let mut state = Arc::clone(&self.state);
        if !before.is_empty() {
            before.apply(Arc::make_mut(&mut state));
        }
        let context = self.context(number, attempt, cancel, state);
        Ok(Prepared { context, changed, before })
    }

    /// Builds the outcome of an attempt in which the tool returned.
    fn ended(&self, prepared: Prepared, returned: Result<Json, ToolError>) -> AttemptOutcome {
        let Prepared { context, changed, before } = prepared;
        let effects = context.effects();
        let is_transient = returned.as_ref().is_err_and(|error| error.is_retryable());
        AttemptOutcome {
            outcome: to_outcome(&self.agent, &self.tool, returned),
            is_transient,
            patch: before.then(effects.state_patch),
            input: changed,
            usage: effects.usage,
            attachments: effects.attachments,
        }
    }

    /// Determines the outcome of an at-most-once call in doubt. `Err(None)` means that it was not executed and may run.
    async fn reconcile(&self, input: Value, cx: &ToolContext) -> Result<Json, Option<String>> {
        let found = match self.tool.reconciler() {
            Some(reconcile) => reconcile(input, cx.clone()).await,
            None => ReconcileOutcome::Unknown,
        };
        match found {
            ReconcileOutcome::Completed(result) => Json::from_serialize(&result).map_err(|error| {
                Some(format!("the result of `reconcile` cannot be serialised to JSON: {error}"))
            }),
            ReconcileOutcome::NotExecuted => Err(None),
            ReconcileOutcome::Unknown => Err(Some(
                "the process stopped during this call, so it is unknown whether the call took \
                 effect; it was not run again"
                    .to_owned(),
            )),
        }
    }

    fn context(
        &self,
        number: u32,
        attempt: AttemptHandle,
        cancel: CancellationToken,
        state: Arc<Value>,
    ) -> ToolContext {
        let stream_writer = CallStream {
            stream_writer: self.stream_writer.clone(),
            attempt,
            step: self.place.step,
        };
        ToolContext::new(ToolContextConfig {
            agent: Arc::clone(&self.place.agent),
            session: self.place.session.clone(),
            run: self.place.run.clone(),
            fencing_token: self.fencing_token,
            step: self.place.step,
            call: self.call.id.clone(),
            tool: Arc::clone(&self.call.name),
            arguments: self.input.text().to_owned(),
            attempt: number,
            timeout: Some(self.timeout),
            cancel,
            state,
            stream: Arc::new(stream_writer),
            trace: Some(self.trace),
        })
    }

    fn wait_before_retry(&self, retry: u32) -> Option<Duration> {
        let jitter = u64::try_from(self.ids.next() & u128::from(u32::MAX)).unwrap_or(0);
        self.tool.retry_policy()?.backoff(retry, jitter)
    }

    fn show(&self, attempt: AttemptHandle, kind: ChunkKind) {
        self.stream_writer.show(Some(attempt), self.place.step, kind);
    }

    fn show_end(&self, attempt: AttemptHandle, outcome: &ToolOutcome) {
        for kind in end_of_call(&self.call, outcome) {
            self.show(attempt, kind);
        }
    }
}

impl CallEnd {
    /// Returns the events of the completed call, in log order.
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
