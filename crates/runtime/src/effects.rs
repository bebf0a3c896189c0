//! Effects shared by all runtimes: the model call, call starts, and the supervision of running effects.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use helix_agents_core::error::Result;
use helix_agents_core::event::{Event, ModelReply};
use helix_agents_core::hooks::HookContext;
use helix_agents_core::id::CallId;
use helix_agents_core::json::Json;
use helix_agents_core::message::Message;
use helix_agents_core::mutant;
use helix_agents_core::session::StepRecord;
use helix_agents_core::step::{CallTask, ChildTask};
use helix_agents_core::stream::Effect;
use helix_agents_core::trace::Operation;
use tokio_util::sync::CancellationToken;

use crate::cancel_reason::CancelReason;
use crate::children::ChildWait;
use crate::driver::Driver;
use crate::family;
use crate::hook_chain::changed;
use crate::lease_keeper::{LeaseEvent, LeaseKeeper};
use crate::model;
use crate::start_queue::StartQueue;
use crate::tools::{CallRun, millis};

impl Driver {
    /// Makes the model call of a step and records the reply.
    ///
    /// # Errors
    /// Returns the errors of [`record`](Self::record). Also returns an error if the run has to stop. Provider failures
    /// are recorded as replies and are not returned as errors.
    pub async fn call_model(
        &mut self,
        lease: &mut LeaseKeeper,
        step: u32,
        force_completion: bool,
    ) -> Result<()> {
        match self.reply_facts(lease, step, force_completion).await? {
            Some(facts) => self.record(lease, facts).await,
            None => self.journal.catch_up().await,
        }
    }

    /// Makes the model call of a step and returns the events to record. Returns `None` if an abort cancelled the call.
    ///
    /// Separate from [`call_model`](Self::call_model), so that a run that waits for its model does not also hold the
    /// memory that recording needs.
    async fn reply_facts(
        &mut self,
        lease: &mut LeaseKeeper,
        step: u32,
        force_completion: bool,
    ) -> Result<Option<Vec<Event>>> {
        let attempt = self.stream_writer.start_attempt(step, Effect::Model { step });
        let state = Arc::clone(self.journal.session().state());
        let cx = HookContext::new(&self.place(step), "llm_call", state);
        let started = lease.now();
        let ended = {
            let lease_view = lease.view().clone();
            let call = model::call(self, step, force_completion, attempt, &cx, &lease_view);
            let call = pin!(call);
            self.guarded(lease, call).await
        };
        let model::CallOutcome { response, price, first } = match ended {
            Ok(outcome) => outcome?,
            Err(CancelReason::Aborted) => return Ok(None),
            Err(reason) => return Err(self.error(reason)),
        };
        if model::was_cancelled(&response) {
            return Ok(None);
        }
        let ended = lease.now();
        let mut reply =
            ModelReply::from_response(step, response, millis(ended.saturating_sub(started)));
        reply.first_ms = first.map(|first| millis(first.saturating_sub(started)));
        reply.ended = self.end_clock().map(|clock| clock.at(ended));
        reply.cost = price.map(|price| price.of(&reply.total_usage()));
        if let Some(message) = reply.message.as_ref().filter(|_| !self.hooks.is_empty()) {
            let message = Message::Assistant(Arc::clone(message));
            let mut hook_call = Box::pin(self.hooks.message(&cx, &message));
            Box::pin(self.under_lease(lease, hook_call.as_mut())).await?;
        }
        let mut facts: Vec<_> = changed(&cx, "llm_call").into_iter().collect();
        facts.push(reply.into());
        self.unsettled.push(attempt);
        Ok(Some(facts))
    }

    /// Prepares these calls to run concurrently with the driver. Omits calls that are no longer open. Also returns the
    /// queue in which at-most-once calls request the recording of their starts.
    #[must_use]
    pub fn calls(
        &self,
        lease: &LeaseKeeper,
        tasks: &[CallTask],
        cancel: &CancellationToken,
    ) -> (Vec<CallRun>, StartQueue) {
        let (session, starts) = (self.journal.session(), StartQueue::default());
        let Some(step) = session.open_step() else { return (Vec::new(), starts) };
        let fencing_token = session.stream_writer().fencing_token;
        let max_append_bytes = self.context.store.max_append_bytes();
        let place = self.place(step.reply.step);
        // All concurrent calls see the state from before the first of them started, even if some have already ended.
        let finishes = |task: &CallTask| {
            let call = step.tool_call(&task.call)?;
            Some(self.agent.tool(&call.name)?.is_finish())
        };
        let comes_after = tasks.iter().any(|task| finishes(task) == Some(true));
        let state = if comes_after { session.step_state() } else { Arc::clone(session.state()) };
        let start_window = match self.in_work_items {
            true => lease.view().start_window(),
            // No other worker starts calls of this run.
            false => Duration::MAX,
        };
        let mut runs = Vec::with_capacity(tasks.len());
        runs.extend(tasks.iter().filter_map(|task| {
            let call = step.tool_call(&task.call)?.clone();
            let tool = Arc::clone(self.agent.tool(&call.name)?);
            let input = step.input(&call.id).unwrap_or_else(Json::empty_object);
            Some(CallRun {
                agent: Arc::clone(&self.agent),
                tool,
                call,
                input,
                task: task.clone(),
                place: place.clone(),
                state: Arc::clone(&state),
                stream_writer: self.stream_writer.clone(),
                hooks: self.hooks.clone(),
                clock: Arc::clone(&self.context.clock),
                ids: Arc::clone(&self.context.ids),
                cancel: cancel.clone(),
                timeout: self.timeout(step, task),
                doubt: self.doubt(step, task, start_window),
                start_window,
                fencing_token,
                max_append_bytes,
                lease_view: lease.view().clone(),
                starts: starts.clone(),
                end_clock: self.end_clock(),
                trace: session.trace_parent(Operation::ToolCall(&task.call)),
            })
        }));
        (runs, starts)
    }

    /// Returns `true` if this process may run a call after its start was appended: no other event answered the call
    /// or aborted the run.
    #[must_use]
    pub fn is_started(&self, call: &CallId) -> bool {
        let session = self.journal.session();
        let call = session.open_step().and_then(|step| step.call(call));
        session.abort_request().is_none()
            && call.is_some_and(|call| call.finish.is_none() && call.started.is_some())
    }

    /// Returns a [`ChildWait`] for each of these children. Omits children whose calls are no longer open.
    #[must_use]
    pub fn children(&self, tasks: &[ChildTask], cancel: &CancellationToken) -> Vec<ChildWait> {
        tasks.iter().filter_map(|task| ChildWait::new(self, task, cancel)).collect()
    }

    fn timeout(&self, step: &StepRecord, task: &CallTask) -> Duration {
        let tool = step.tool_call(&task.call).and_then(|call| self.agent.tool(&call.name));
        let own = tool.and_then(|tool| tool.own_timeout());
        own.unwrap_or(self.agent.limits().tool_timeout)
    }

    /// Returns how long the earlier owner may still execute a call in doubt: the call's timeout minus the time between
    /// its recorded start and the last reading of the store's clock. Another worker of the same run may have started
    /// the call up to `start_window` later. A worker of an earlier run has lost its lease.
    fn doubt(&self, step: &StepRecord, task: &CallTask, start_window: Duration) -> Duration {
        if !task.in_doubt {
            return Duration::ZERO;
        }
        let started = step.call(&task.call).and_then(|state| state.started.as_ref());
        let Some(started) = started else { return Duration::ZERO };
        let timeout = Duration::from_millis(started.timeout_ms.unwrap_or(0));
        let is_same_run = self.in_work_items && started.run == self.live.run;
        let limit = if is_same_run { timeout.saturating_add(start_window) } else { timeout };
        let now = self.journal.session().clock();
        started.at.map_or(limit, |then| limit.saturating_sub(now.since(then)))
    }

    /// Passes a pending interrupt request on to the children that the run waits for.
    pub async fn forward_interrupt(&self, lease: &mut LeaseKeeper) {
        let session = self.journal.session();
        if let Some(request) = session.interrupt_request() {
            lease.note_interrupt(request);
            Box::pin(family::interrupt_below(&self.context, session, request)).await;
        }
    }

    /// Waits for an effect, writes its chunks to the stream, and stops polling it if the run has to stop. The caller
    /// then drops the effect, or gives it time to end with [`under_lease`](Self::under_lease). The effect is passed
    /// pinned, because a future that is passed by value is stored again in every enclosing future, which costs memory
    /// for each waiting run.
    ///
    /// # Errors
    /// Returns the reason for the cancellation.
    pub async fn guarded<T>(
        &self,
        lease: &mut LeaseKeeper,
        effect: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<T, CancelReason> {
        self.watched(lease, effect, true).await
    }

    /// Waits for work that an abort does not cancel, such as hooks, and keeps the lease in the meantime.
    ///
    /// # Errors
    /// Returns an error if the run has to stop.
    pub async fn under_lease<T>(
        &self,
        lease: &mut LeaseKeeper,
        work: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<T> {
        if mutant!("lease-not-kept") {
            return Ok(self.stream_writer.while_pumping(work).await);
        }
        self.watched(lease, work, false).await.map_err(|reason| self.error(reason))
    }

    async fn watched<T>(
        &self,
        lease: &mut LeaseKeeper,
        mut work: Pin<&mut (impl Future<Output = T> + Send)>,
        aborts: bool,
    ) -> Result<T, CancelReason> {
        let known = self.journal.acknowledged();
        let watched = pin!(async {
            loop {
                let event = match lease.watch_while(known, work.as_mut()).await {
                    Either::Left(done) => return Ok(done),
                    Either::Right(event) => event,
                };
                match event {
                    // The run handles the abort when the work is done.
                    LeaseEvent::Cancel(CancelReason::Aborted) if !aborts => {}
                    LeaseEvent::Renewed => {}
                    LeaseEvent::Cancel(reason) => return Err(reason),
                    // The run handles the interrupt at the end of the step; its children handle it at their step ends.
                    LeaseEvent::Interrupt(request) => {
                        self.interrupt.cancel();
                        let session = self.journal.session();
                        Box::pin(family::interrupt_below(&self.context, session, &request)).await;
                    }
                }
            }
        });
        self.stream_writer.while_pumping(watched).await
    }
}
