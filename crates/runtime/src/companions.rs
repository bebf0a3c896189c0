//! Executes companion tool calls. A companion is a named sub-agent whose session stays available: its parent can send
//! it messages, query its status and stop it.

use std::sync::Arc;

use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::event::Event;
use helix_agents_core::executor::{Input, ResumeOptions};
use helix_agents_core::fault;
use helix_agents_core::json::Json;
use helix_agents_core::session::{
    CallRecord, MAX_CONFLICTS, child_status, end_of_call, queue_message_in_turn, recordable_result,
    session_and_status,
};
use helix_agents_core::step::{
    CallTask, ChildSpec, CompanionMessage, CompanionOutcome, CompanionTask, Delivery,
    child_start_failed, companion_task,
};
use helix_agents_core::stream::{ChunkKind, Effect};

use crate::children;
use crate::driver::Driver;
use crate::family;
use crate::lease_keeper::LeaseKeeper;
use crate::start::{self, StartedBy};

impl Driver {
    /// Executes calls of companion tools sequentially. Each call is recorded before the next one runs, so that every
    /// companion name is assigned once.
    ///
    /// # Errors
    /// Returns the errors of [`record`](Self::record). Also returns an error if the runtime is shutting down.
    pub async fn run_companions(
        &mut self,
        lease: &mut LeaseKeeper,
        tasks: &[CallTask],
    ) -> Result<()> {
        for task in tasks {
            let session = self.journal.session();
            let Some(step) = session.open_step() else { return Ok(()) };
            let is_open = |call: &CallRecord| call.finish.is_none() && call.child.is_none();
            if !step.call(&task.call).is_some_and(is_open) {
                // Another worker that executes the same run has handled this call.
                continue;
            }
            let Some(call) = step.tool_call(&task.call).cloned() else { return Ok(()) };
            let Some(companion_task) = companion_task(session, &self.agent, &call) else {
                continue;
            };
            let input = call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object);
            let step = session.last_step();
            let attempt =
                self.stream_writer.start_attempt(step, Effect::Tool { call: call.id.clone() });
            self.stream_writer.show(
                Some(attempt),
                step,
                ChunkKind::ToolStart {
                    call: call.id.clone(),
                    tool: Arc::clone(&call.name),
                    arguments: input.text().to_owned(),
                    client: false,
                },
            );
            self.unsettled.push(attempt);
            if let CompanionTask::Start(spec) = &companion_task {
                // Shown before the child writes chunks itself.
                self.stream_writer.show(Some(attempt), step, spec.start_chunk());
                self.stream_writer.flush().await;
            }
            let mut executing = Box::pin(drive(self, companion_task));
            let (end, change) = self.under_lease(lease, executing.as_mut()).await??;
            drop(executing);
            fault::point("companion.carried_out");
            let limit = self.context.store.max_append_bytes();
            let mut facts = Vec::from_iter(change);
            for event in end.facts(&call, task.attempt) {
                let Event::ToolFinished(finish) = event else {
                    facts.push(event);
                    continue;
                };
                let finish = recordable_result(finish, limit);
                for kind in end_of_call(&call, &finish.outcome) {
                    self.stream_writer.show(Some(attempt), step, kind);
                }
                facts.push(Event::ToolFinished(finish));
            }
            self.record(lease, facts).await?;
        }
        Ok(())
    }
}

/// Executes a companion call. Returns its outcome and the state changes of hooks.
async fn drive(driver: &Driver, task: CompanionTask) -> Result<(CompanionOutcome, Option<Event>)> {
    let logs = driver.context.logs();
    let end = match task {
        CompanionTask::Start(spec) => return spawn(driver, *spec).await,
        CompanionTask::Done(outcome) => CompanionOutcome::done(outcome),
        CompanionTask::Wait(start) => CompanionOutcome::waiting(start),
        CompanionTask::Message(message) => send(driver, message).await?,
        CompanionTask::Status(start) => {
            CompanionOutcome::status(&start, &child_status(logs, &start.session).await?)
        }
        CompanionTask::List(starts) => {
            let mut children = Vec::with_capacity(starts.len());
            for start in starts {
                let status = child_status(logs, &start.session).await?;
                children.push((start, status));
            }
            CompanionOutcome::listed(&children)
        }
        CompanionTask::Stop(start, agent) => {
            let reason = Some("terminated by the session that started it".to_owned());
            let (runtime, child, above) =
                (&driver.runtime, &start.session, &driver.inherited_hooks);
            family::stop(runtime, agent, child, reason, true, above).await?;
            CompanionOutcome::stopped(&start)
        }
    };
    Ok((end, None))
}

async fn spawn(driver: &Driver, spec: ChildSpec) -> Result<(CompanionOutcome, Option<Event>)> {
    let (started, change) = children::start_child(driver, spec).await?;
    let end = match started {
        Ok(start) => CompanionOutcome::assigned(start),
        Err(error) => CompanionOutcome::done(child_start_failed(&error)),
    };
    Ok((end, change))
}

/// Delivers a message to a child. A running child receives it between two steps. A child that waits or was interrupted
/// receives it when it continues. For an idle child, the message starts a new turn.
async fn send(driver: &Driver, message: CompanionMessage) -> Result<CompanionOutcome> {
    let (runtime, context, above) = (&driver.runtime, &driver.context, &driver.inherited_hooks);
    let child = &message.start.session;
    for _ in 0..MAX_CONFLICTS {
        let (fold, status) = session_and_status(context.logs(), child).await?;
        let agent = Arc::clone(&message.agent);
        match message.delivery(&fold, &status) {
            Delivery::Known => return Ok(CompanionOutcome::assigned(message.start)),
            Delivery::Refused(reason) => return Ok(CompanionMessage::refused(reason)),
            Delivery::NewTurn => {
                let input = Input::from(message.message.clone());
                let turn =
                    start::continue_child(runtime, agent, &input, child, &message.run, above);
                match Box::pin(turn).await {
                    Ok(_) => return Ok(CompanionOutcome::assigned(message.start)),
                    Err(error) if error.code() == ErrorCode::AlreadyRunning => {}
                    Err(error) => return Err(error),
                }
            }
            Delivery::Queued => {
                let (request, message) = (&message.request, &message.message);
                let queue = context.request_context();
                if !queue_message_in_turn(queue, child, request, message).await? {
                    // The turn has ended meanwhile, so the message starts another one.
                    continue;
                }
                if child_status(context.logs(), child).await?.can_continue() {
                    let options = ResumeOptions::default();
                    let by = &StartedBy::Parent { cleared: None };
                    let resume = start::resume_if_first(runtime, agent, child, options, above, by);
                    Box::pin(resume).await?;
                }
            }
        }
    }
    Ok(CompanionMessage::undelivered())
}
