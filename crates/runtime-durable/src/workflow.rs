//! The workflow type that executes every run. Its steps are built in `run_loop`.

use std::sync::{Arc, Weak};

use dbos::{DBOS, WorkflowRef};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::AgentResult;
use helix_agents_core::panics::caught_async;
use helix_agents_core::session::{RunStatus, SessionOverview};
use helix_agents_runtime::{RunRef, Runtime, RuntimeContext};
use tokio::sync::oneshot;

use crate::engine::{DurableEngine, WeakEngine};
use crate::failure::{self, Failure, Stopped};
use crate::run_loop::RunExecution;

/// The version of the workflow body. Increase it when the steps or their order change: DBOS hands a workflow only to
/// processes with the same version; other processes take over the run after lease expiry.
pub(crate) const BODY: u32 = 1;

/// The name of the workflow in DBOS.
pub(crate) const NAME: &str = "run";

/// The registered workflow. Its input contains only the ids of a run.
pub(crate) type RunWorkflow = WorkflowRef<RunRef, (), Failure>;

/// Registers the workflow with DBOS. DBOS owns the workflow, so the workflow must not own the engine, which owns DBOS.
///
/// # Errors
/// Returns the errors of DBOS.
pub(crate) fn register(dbos: &DBOS, engine: WeakEngine) -> Result<RunWorkflow, dbos::Error> {
    dbos.register_workflow(NAME, move |run_ref: RunRef| {
        let engine = engine.get().and_then(Weak::upgrade);
        async move {
            match engine {
                Some(engine) => drive(engine, run_ref).await,
                // The runtime was dropped. The row stays unchanged.
                None => Err(Stopped::Interrupted { workflow_id: run_ref.run.to_string() }),
            }
        }
    })
}

async fn drive(engine: Arc<DurableEngine>, run_ref: RunRef) -> Result<(), Stopped> {
    let context = Arc::clone(engine.context());
    let pending = engine.take_pending(&run_ref.run);
    let limiter =
        engine.limiter().filter(|_| pending.as_ref().is_none_or(|pending| pending.needs_permit));
    let registration = pending.map(|pending| pending.registration);
    // A run that was started in this process already has a task that a shutdown waits for. Other runs need one.
    let _shutdown_hold = registration.is_none().then(|| hold_shutdown(&context));
    let id = run_ref.workflow_id(engine.app());
    let runtime = Runtime::new(Arc::clone(&context), Arc::clone(&engine)).erased();
    let done = {
        let execution = RunExecution::new(&runtime, &run_ref, &id, limiter, registration.is_some());
        let driven = caught_async("the run", || execution.drive());
        tokio::select! {
            biased;
            done = driven => done.unwrap_or_else(|_| Err(panicked(&run_ref))),
            // This race is not replayed: the losing side records nothing.
            () = until_shutdown(&context) => Err(Stopped::Interrupted { workflow_id: id.clone() }),
        }
    };
    if let Err(stopped) = &done {
        tracing::warn!(session = %run_ref.session, run = %run_ref.run, error = %stopped, "the run stopped");
        if !failure::is_executed_elsewhere(stopped) {
            runtime.release_run(&run_ref).await;
        }
    }
    if let Some(registration) = registration {
        let result = match &done {
            Ok(()) => run_result(&context, &run_ref).await,
            Err(stopped) => outcome_after_stop(&context, &run_ref, stopped).await,
        };
        registration.run().finish(result);
    }
    done
}

/// Makes a shutdown wait until the returned value is dropped.
fn hold_shutdown(context: &RuntimeContext) -> oneshot::Sender<()> {
    let (ends, ended) = oneshot::channel();
    drop(context.tasks.spawn(async move { drop(ended.await) }));
    ends
}

/// Waits until a shutdown has cancelled the running effects and another grace period has passed.
pub(crate) async fn until_shutdown(context: &RuntimeContext) {
    context.tasks.shutdown.cancelled().await;
    context.clock.sleep(context.grace).await;
}

/// Converts a panic into a final failure. Otherwise DBOS would execute the workflow again, and it would panic again.
fn panicked(run_ref: &RunRef) -> Stopped {
    tracing::error!(session = %run_ref.session, run = %run_ref.run, "executing the run panicked");
    // The panic message is omitted because it may contain user data, and this is stored in DBOS's tables.
    Failure::new(ErrorCode::Internal, "executing the run panicked; see the process log").into()
}

/// Returns the outcome of a run whose workflow stopped. A process that takes over a run cancels its workflow. The log
/// takes precedence: the run may have ended before DBOS could record that.
async fn outcome_after_stop(
    context: &RuntimeContext,
    run_ref: &RunRef,
    stopped: &Stopped,
) -> Result<AgentResult> {
    let session = context.logs().overview(&run_ref.session).await;
    let is_current =
        |session: &SessionOverview| session.current_run().is_some_and(|run| run.id == run_ref.run);
    match session {
        Ok(session) if !is_current(&session) => run_result(context, run_ref).await,
        _ => Err(failure::to_error(stopped)),
    }
}

/// Returns the outcome of a run.
async fn run_result(context: &RuntimeContext, run_ref: &RunRef) -> Result<AgentResult> {
    let record = context.record_of(run_ref).await?;
    let error = |code, message: &'static str| {
        let error = Error::new(code, message);
        error.with_context("session", &run_ref.session).with_context("run", &run_ref.run)
    };
    match record {
        Some(run) if run.status == RunStatus::Superseded => Err(error(
            ErrorCode::Superseded,
            "another run took over the session; request a new handle",
        )),
        Some(run) => Ok(AgentResult::of(&run)),
        None => Err(error(ErrorCode::RunNotFound, "the session has no such run")),
    }
}
