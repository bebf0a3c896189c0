//! Effects as every runtime has them: the model call, starts of calls, and the watch over what runs.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::Result;
use helix_agents_core::event::ModelReply;
use helix_agents_core::hooks::{HookContext, changed};
use helix_agents_core::id::CallId;
use helix_agents_core::json::Json;
use helix_agents_core::message::Message;
use helix_agents_core::mutant;
use helix_agents_core::session::OpenStep;
use helix_agents_core::step::{CallTask, ChildTask};
use helix_agents_core::stream::Effect;
use tokio_util::sync::CancellationToken;

use crate::children::ChildRun;
use crate::driver::Driver;
use crate::family;
use crate::lease::{LeaseKeeper, News};
use crate::model;
use crate::starts::Starts;
use crate::stop::Stop;
use crate::tools::{CallRun, millis};

impl Driver {
    /// Makes the model call of a step and records the reply.
    ///
    /// # Errors
    /// As [`record`](Self::record), and if the run has to stop. What the provider says is no error.
    pub async fn call_model(
        &mut self,
        lease: &mut LeaseKeeper,
        step: u32,
        force_completion: bool,
    ) -> Result<()> {
        let ticket = self.feed.begin(step, Effect::Model { step });
        let state = Arc::clone(self.journal.session().state());
        let cx = HookContext::new(&self.place(step), "llm_call", state);
        let begun = lease.now();
        let ended = {
            let ownership = lease.ownership().clone();
            let call = model::call(self, step, force_completion, ticket, &cx, &ownership);
            let call = pin!(call);
            self.guarded(lease, call).await
        };
        let (response, price) = match ended {
            Ok(response) => response?,
            Err(Stop::Aborted) => return self.journal.catch_up().await,
            Err(stop) => return Err(self.error(stop)),
        };
        if model::was_cancelled(&response) {
            return self.journal.catch_up().await;
        }
        let took = millis(lease.now().saturating_sub(begun));
        let mut reply = ModelReply::from_response(step, response, took);
        reply.cost = price.map(|price| price.of(&reply.usage));
        if let Some(message) = reply.message.as_ref().filter(|_| !self.hooks.is_empty()) {
            let message = Message::Assistant(Arc::clone(message));
            let told = pin!(self.hooks.message(&cx, &message));
            self.under_lease(lease, told).await?;
        }
        let mut facts: Vec<_> = changed(&cx, "llm_call").into_iter().collect();
        facts.push(reply.into());
        self.unsettled.push(ticket);
        self.record(lease, facts).await
    }

    /// What it takes to run these calls beside this, and where those of them ask for their starts that
    /// must not run twice.
    #[must_use]
    pub fn calls(
        &self,
        lease: &LeaseKeeper,
        tasks: &[CallTask],
        cancel: &CancellationToken,
    ) -> (Vec<CallRun>, Starts) {
        let (session, starts) = (self.journal.session(), Starts::default());
        let Some(step) = session.open_step() else { return (Vec::new(), starts) };
        let fencing_token = session.stream_writer().fencing_token;
        let place = self.place(step.reply.step);
        // What runs side by side sees what was before all of it, whichever of it has ended by now.
        let finishes = |task: &CallTask| {
            let call = step.tool_call(&task.call)?;
            Some(self.agent.tool(&call.name)?.is_finish())
        };
        let comes_after = tasks.iter().any(|task| finishes(task) == Some(true));
        let state = if comes_after { session.step_state() } else { Arc::clone(session.state()) };
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
                feed: self.feed.clone(),
                hooks: self.hooks.clone(),
                clock: Arc::clone(&self.parts.clock),
                ids: Arc::clone(&self.parts.ids),
                cancel: cancel.clone(),
                timeout: self.timeout(step, task),
                doubt: self.doubt(step, task),
                fencing_token,
                ownership: lease.ownership().clone(),
                starts: starts.clone(),
            })
        }));
        (runs, starts)
    }

    /// Whether a call whose start was appended is this process's to run: nothing else came in that
    /// answered it, or that aborts the run.
    #[must_use]
    pub fn is_started(&self, call: &CallId) -> bool {
        let session = self.journal.session();
        let call = session.open_step().and_then(|step| step.call(call));
        session.abort_request().is_none()
            && call.is_some_and(|call| call.finish.is_none() && call.started.is_some())
    }

    /// What it takes to wait for these children.
    #[must_use]
    pub fn children(&self, tasks: &[ChildTask], cancel: &CancellationToken) -> Vec<ChildRun> {
        tasks.iter().filter_map(|task| ChildRun::new(self, task, cancel)).collect()
    }

    fn timeout(&self, step: &OpenStep, task: &CallTask) -> Duration {
        let tool = step.tool_call(&task.call).and_then(|call| self.agent.tool(&call.name));
        let own = tool.and_then(|tool| tool.own_timeout());
        own.unwrap_or(self.agent.limits().tool_timeout)
    }

    /// How long the one that started a call in doubt may still be at it: its timeout, counted from the
    /// recorded start by the store's clock, less what had passed when that was read last.
    fn doubt(&self, step: &OpenStep, task: &CallTask) -> Duration {
        if !task.in_doubt {
            return Duration::ZERO;
        }
        let started = step.call(&task.call).and_then(|state| state.started.as_ref());
        let Some(started) = started else { return Duration::ZERO };
        let limit = Duration::from_millis(started.timeout_ms.unwrap_or(0));
        let now = self.journal.session().clock();
        started.at.map_or(limit, |then| limit.saturating_sub(now.since(then)))
    }

    /// Asks the children that are waited for to stop, if the run was asked to before.
    pub async fn meet_interrupt(&self, lease: &mut LeaseKeeper) {
        let session = self.journal.session();
        if let Some(request) = session.interrupt_request() {
            lease.heard(request);
            Box::pin(family::interrupt_below(&self.parts, session, request)).await;
        }
    }

    /// Waits for an effect, shows what it shows, and breaks it off if there is reason to. The effect
    /// comes pinned: a future that is handed on by value is laid out once more in every future that
    /// takes it, and each waiting run pays for that.
    ///
    /// # Errors
    /// Why it was broken off.
    pub async fn guarded<T>(
        &self,
        lease: &mut LeaseKeeper,
        effect: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<T, Stop> {
        self.watched(lease, effect, true).await
    }

    /// Waits for what an abort does not break off, such as hooks, and keeps the lease meanwhile.
    ///
    /// # Errors
    /// If the run has to stop.
    pub async fn under_lease<T>(
        &self,
        lease: &mut LeaseKeeper,
        work: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<T> {
        if mutant!("lease-not-kept") {
            return Ok(self.feed.while_pumping(work).await);
        }
        self.watched(lease, work, false).await.map_err(|stop| self.error(stop))
    }

    async fn watched<T>(
        &self,
        lease: &mut LeaseKeeper,
        mut work: Pin<&mut (impl Future<Output = T> + Send)>,
        aborts: bool,
    ) -> Result<T, Stop> {
        let known = self.journal.acknowledged();
        let ownership = lease.ownership().clone();
        let watched = pin!(async {
            loop {
                let news = tokio::select! {
                    biased;
                    done = ownership.while_owned(work.as_mut()) => return Ok(done),
                    news = lease.watch(known) => news,
                };
                match news {
                    // The run meets it when the work is done.
                    News::Stop(Stop::Aborted) if !aborts => {}
                    News::Renewed => {}
                    News::Stop(stop) => return Err(stop),
                    // The run meets it at the step's end; children that it waits for have ends too.
                    News::Interrupt(request) => {
                        let session = self.journal.session();
                        Box::pin(family::interrupt_below(&self.parts, session, &request)).await;
                    }
                }
            }
        });
        self.feed.while_pumping(watched).await
    }
}
