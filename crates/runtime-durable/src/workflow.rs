//! The one workflow that carries out all runs: what is around its steps.

use std::sync::{Arc, Weak};

use dbos::{DBOS, WorkflowRef};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::AgentResult;
use helix_agents_core::panics::caught_async;
use helix_agents_core::session::{RunStatus, SessionOverview};
use helix_agents_runtime::{RunRef, Runtime, RuntimeContext};
use tokio::sync::oneshot;

use crate::engine::{Itself, Workflows};
use crate::failure::{self, Failure, Stopped};
use crate::step_site::Site;

/// The number of the body. Whoever changes which steps it builds, or in which order, raises it: DBOS
/// gives a workflow to processes with the same body only, and the others take its run over by its lease.
pub(crate) const BODY: u32 = 1;

/// What it is called in DBOS.
pub(crate) const NAME: &str = "run";

/// The workflow, of a run's ids.
pub(crate) type RunWorkflow = WorkflowRef<RunRef, (), Failure>;

/// Tells DBOS of the workflow. DBOS keeps it for as long as it lives itself, and so it must not own what
/// owns DBOS.
///
/// # Errors
/// DBOS's.
pub(crate) fn register(dbos: &DBOS, engine: Itself) -> Result<RunWorkflow, dbos::Error> {
    dbos.register_workflow(NAME, move |of: RunRef| {
        let engine = engine.get().and_then(Weak::upgrade);
        async move {
            match engine {
                Some(engine) => drive(engine, of).await,
                // Nobody has the runtime any more; the row stays as it is.
                None => Err(Stopped::Interrupted { workflow_id: of.run.to_string() }),
            }
        }
    })
}

async fn drive(engine: Arc<Workflows>, of: RunRef) -> Result<(), Stopped> {
    let context = Arc::clone(engine.context());
    let begun = engine.taken_up(&of.run);
    let turns = engine.turns().filter(|_| begun.as_ref().is_none_or(|begun| begun.needs_turns));
    let listed = begun.map(|begun| begun.listed);
    // Whoever began it here waits for it.
    let _under_way = listed.is_none().then(|| under_way(&context));
    let id = of.workflow_id(engine.app());
    let runtime = Runtime::new(Arc::clone(&context), Arc::clone(&engine) as _);
    let done = {
        let site = Site::new(&runtime, &of, &id, turns, listed.is_some());
        let driven = caught_async("the run", || site.drive());
        tokio::select! {
            biased;
            done = driven => done.unwrap_or_else(|_| Err(panicked(&of))),
            // No race that a replay would have to repeat: whoever loses it records nothing.
            () = shut_down(&context) => Err(Stopped::Interrupted { workflow_id: id.clone() }),
        }
    };
    if let Err(stopped) = &done {
        tracing::warn!(session = %of.session, run = %of.run, error = %stopped, "the run stopped");
        if !failure::is_elsewhere(stopped) {
            runtime.give_up(&of).await;
        }
    }
    if let Some(listed) = listed {
        let result = match &done {
            Ok(()) => result(&context, &of).await,
            Err(stopped) => why(&context, &of, stopped).await,
        };
        listed.run().finish(result);
    }
    done
}

/// Has a shutdown wait until this is dropped.
fn under_way(context: &RuntimeContext) -> oneshot::Sender<()> {
    let (ends, ended) = oneshot::channel();
    drop(context.tasks.spawn(async move { drop(ended.await) }));
    ends
}

/// Ends when the run has had its time to stop by itself.
pub(crate) async fn shut_down(context: &RuntimeContext) {
    context.tasks.shutdown.cancelled().await;
    context.clock.sleep(context.grace).await;
}

/// What a panic means: it does not happen again, as it would if DBOS were left to it.
fn panicked(of: &RunRef) -> Stopped {
    tracing::error!(session = %of.session, run = %of.run, "carrying out the run panicked");
    // What a panic says may be anything, and this goes into DBOS's tables.
    Failure::new(ErrorCode::Internal, "carrying out the run panicked; the log says where").into()
}

/// Why nobody carries a run out any more. Whoever takes one over cancels its workflow.
/// What the log says of it goes first: it may have ended before DBOS could note that.
async fn why(context: &RuntimeContext, of: &RunRef, stopped: &Stopped) -> Result<AgentResult> {
    let session = context.logs().overview(&of.session).await;
    let is_current =
        |session: &SessionOverview| session.current_run().is_some_and(|run| run.id == of.run);
    match session {
        Ok(session) if !is_current(&session) => result(context, of).await,
        _ => Err(failure::to_error(stopped)),
    }
}

/// How a run ended.
async fn result(context: &RuntimeContext, of: &RunRef) -> Result<AgentResult> {
    let record = context.record_of(of).await?;
    let error = |code, message: &'static str| {
        let error = Error::new(code, message);
        error.with_context("session", &of.session).with_context("run", &of.run)
    };
    match record {
        Some(run) if run.status == RunStatus::Superseded => {
            Err(error(ErrorCode::Superseded, "another run took over"))
        }
        Some(run) => Ok(AgentResult::of(&run)),
        None => Err(error(ErrorCode::RunNotFound, "the session has no such run")),
    }
}
