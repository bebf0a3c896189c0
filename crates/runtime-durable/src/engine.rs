//! The engine: each run is a workflow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use dbos::sysdb::types::{WorkflowFilter, WorkflowRecord, WorkflowStatus};
use dbos::{DBOS, StartOptions, Timeout};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::RunId;
use helix_agents_runtime::{Engine, LiveRun, RunRef, RunRegistration, RuntimeContext, StartedRun};
use tokio::runtime::Handle;

use crate::config::Database;
use crate::failure::{self, Stopped};
use crate::turns::ConcurrencyLimiter;
use crate::workflow::{self, RunWorkflow};

/// How long somebody waits for what is no more than a courtesy.
const COURTESY: Duration = Duration::from_secs(5);

/// Where the engine is found by what DBOS owns, and what must not own DBOS.
pub(crate) type Itself = Arc<OnceLock<Weak<Workflows>>>;

/// Carries runs out as workflows of DBOS.
#[derive(Debug)]
pub(crate) struct Workflows {
    context: Arc<RuntimeContext>,
    dbos: DBOS,
    run: RunWorkflow,
    app: String,
    /// Whether no process will have the name of this one.
    is_unique: bool,
    /// None if there is no limit.
    turns: Option<ConcurrencyLimiter>,
    /// The tokio runtime that DBOS's tasks run on.
    on: Handle,
    /// The same, for what outlives a call.
    itself: Itself,
    /// Runs that began here and that their workflows have not taken up yet.
    begun: Mutex<HashMap<RunId, BegunRun>>,
}

/// A run that began here.
#[derive(Debug)]
pub(crate) struct BegunRun {
    /// What those who began it wait for.
    pub(crate) listed: RunRegistration,
    /// Whether it needs turns of its own. One that a tool starts does not: the tool has a turn already, and
    /// may wait for the run.
    pub(crate) needs_turns: bool,
}

impl Workflows {
    /// The engine of this process; DBOS is not launched yet. To be called on the tokio runtime that is
    /// to carry runs out.
    ///
    /// # Errors
    /// DBOS's, put in our words.
    pub(crate) fn new(context: Arc<RuntimeContext>, database: &Database) -> Result<Arc<Self>> {
        let (dbos, itself) = (DBOS::new(database.to_dbos()), Itself::default());
        let run = workflow::register(&dbos, Arc::clone(&itself));
        let engine = Arc::new(Self {
            context,
            dbos,
            run: run.map_err(|error| failure::of_dbos("register the workflow", &error))?,
            app: database.app.clone(),
            is_unique: database.executor.is_none(),
            turns: database.max_runs.map(ConcurrencyLimiter::new),
            on: Handle::current(),
            itself,
            begun: Mutex::default(),
        });
        drop(engine.itself.set(Arc::downgrade(&engine)));
        Ok(engine)
    }

    pub(crate) fn context(&self) -> &Arc<RuntimeContext> {
        &self.context
    }

    pub(crate) fn dbos(&self) -> &DBOS {
        &self.dbos
    }

    pub(crate) fn app(&self) -> &str {
        &self.app
    }

    pub(crate) fn turns(&self) -> Option<&ConcurrencyLimiter> {
        self.turns.as_ref()
    }

    /// What those who began a run here wait for; none if it began elsewhere.
    pub(crate) fn taken_up(&self, run: &RunId) -> Option<BegunRun> {
        self.begun().remove(run)
    }

    fn begun(&self) -> MutexGuard<'_, HashMap<RunId, BegunRun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has DBOS do something, on a task of its own: many calls are refused in the middle of a step, and
    /// that is where children begin. DBOS itself asks a database that is away for ever.
    async fn ask<T: Send + 'static>(
        &self,
        what: &'static str,
        limit: Duration,
        asked: impl Future<Output = Result<T, dbos::Error>> + Send + 'static,
    ) -> Result<T> {
        let task = self.on.spawn(tokio::time::timeout(limit, asked));
        match task.await {
            Ok(Ok(Ok(done))) => Ok(done),
            Ok(Ok(Err(error))) => Err(failure::of_dbos(what, &error)),
            Ok(Err(_)) => Err(Error::new(
                ErrorCode::StoreUnavailable,
                format!("DBOS could not {what}: its database did not answer in time"),
            )),
            Err(_) => Err(Error::new(
                ErrorCode::Closed,
                format!("DBOS could not {what}: its tokio runtime was shut down"),
            )),
        }
    }

    /// Begins the workflow of a run.
    async fn start(&self, of: &RunRef) -> Result<()> {
        let id = of.workflow_id(&self.app);
        let (run, of, dbos) = (self.run.clone(), of.clone(), self.dbos.clone());
        let start = async move {
            make_room(&dbos, &id, &of).await?;
            let options = StartOptions {
                workflow_id: Some(&id),
                timeout: Timeout::None,
                ..StartOptions::default()
            };
            run.start_with(of, options).lift::<dbos::EngineOnly>().await
        };
        // Later, somebody else may have begun to go on with it.
        let started = self.ask("begin the run's workflow", self.context.lease, start).await?;
        // DBOS notes an end after the run has it. A shutdown waits for that, and so does the runtime.
        let (engine, context) =
            (self.itself.get().and_then(Weak::upgrade), Arc::clone(&self.context));
        drop(self.context.tasks.spawn(async move {
            tokio::select! {
                biased;
                ended = started.result() => drop(ended),
                () = workflow::shut_down(&context) => {}
            }
            drop(engine);
        }));
        Ok(())
    }

    /// Cancels the workflow of a run that nobody waits for any more. What it has under way stops; what
    /// is left of it would find out by itself.
    async fn cancel(&self, of: &RunRef) {
        let id = of.workflow_id(&self.app);
        let dbos = self.dbos.clone();
        let cancel = async move { dbos.cancel(&id).await };
        if let Err(error) = self.ask("cancel a workflow", COURTESY, cancel).await {
            tracing::warn!(session = %of.session, %error, "what was taken over was not cancelled");
        }
    }
}

#[async_trait]
impl Engine for Workflows {
    fn kind(&self) -> &'static str {
        "durable"
    }

    /// A process of the same name goes on with what this one leaves.
    fn is_in_process(&self) -> bool {
        self.is_unique
    }

    async fn drive(&self, begun: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let live = Arc::clone(begun.driver.live());
        let (over, needs_turns) = (begun.over.clone(), !begun.in_tool);
        let of = begun.in_parts();
        if let Some(over) = over {
            self.cancel(&over).await;
        }
        // Whatever becomes of the workflow, nobody waits for it forever.
        let listed = RunRegistration::new(&self.context, &live);
        self.begun().insert(of.run.clone(), BegunRun { listed, needs_turns });
        if let Err(error) = self.start(&of).await {
            drop(self.taken_up(&of.run));
            return Err(error);
        }
        Ok(Some(live))
    }

    async fn stopped(&self, of: &RunRef) -> Option<Error> {
        let id = of.workflow_id(&self.app);
        let dbos = self.dbos.clone();
        let look = async move { row(&dbos, &id, true).await };
        let row = match self.ask("look at a workflow", COURTESY, look).await {
            Ok(row) => row.filter(|row| is_of(row, of))?,
            Err(error) => {
                tracing::warn!(session = %of.session, %error, "how its workflow stands is unknown");
                return None;
            }
        };
        let error = match row.status {
            WorkflowStatus::Error => {
                let stopped = row.error.as_deref().map(serde_json::from_str::<Stopped>);
                match stopped {
                    Some(Ok(stopped)) => failure::to_error(&stopped),
                    _ => Error::new(ErrorCode::Internal, "the run's workflow failed"),
                }
            }
            WorkflowStatus::Cancelled => failure::cancelled(),
            WorkflowStatus::MaxRecoveryAttemptsExceeded => failure::parked(),
            // One that ended well has an end in the log, which who asks is about to see.
            _ => return None,
        };
        Some(error.with_context("session", &of.session).with_context("run", &of.run))
    }
}

/// Nobody has the runtime any more, and so nothing is under way either: a workflow holds on to it.
impl Drop for Workflows {
    fn drop(&mut self) {
        if self.dbos.is_launched() {
            let dbos = self.dbos.clone();
            drop(self.on.spawn(async move { dbos.shutdown().await }));
        }
    }
}

/// A workflow's row.
async fn row(dbos: &DBOS, id: &str, whole: bool) -> Result<Option<WorkflowRecord>, dbos::Error> {
    let filter =
        WorkflowFilter { workflow_ids: vec![id], load_output: whole, ..WorkflowFilter::default() };
    Ok(dbos.list_workflows(&filter).await?.pop())
}

/// Whether a row is that of this run: a session that was deleted and began anew counts from zero again.
fn is_of(row: &WorkflowRecord, of: &RunRef) -> bool {
    run_of(row).is_none_or(|it| it.run == of.run)
}

/// The run that a row is of.
pub(crate) fn run_of(row: &WorkflowRecord) -> Option<RunRef> {
    row.input.as_deref().and_then(|input| serde_json::from_str(input).ok())
}

/// Removes a row of the same id that another run left: DBOS would take the new one for the old.
async fn make_room(dbos: &DBOS, id: &str, of: &RunRef) -> Result<(), dbos::Error> {
    let Some(old) = row(dbos, id, false).await?.filter(|row| !is_of(row, of)) else {
        return Ok(());
    };
    tracing::info!(workflow = old.workflow_id, "the rows of a deleted session are removed");
    dbos.cancel(id).await?;
    dbos.delete(id).await
}
