//! The engine that executes each run as a DBOS workflow.

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
use crate::limiter::ConcurrencyLimiter;
use crate::workflow::{self, RunWorkflow};

/// The timeout of best-effort operations, which may fail without consequences.
const BEST_EFFORT_LIMIT: Duration = Duration::from_secs(5);

/// A weak reference to the engine for closures that DBOS owns. A strong reference would create a cycle, because the
/// engine owns DBOS.
pub(crate) type WeakEngine = Arc<OnceLock<Weak<DurableEngine>>>;

/// An engine that executes runs as DBOS workflows.
#[derive(Debug)]
pub struct DurableEngine {
    context: Arc<RuntimeContext>,
    dbos: DBOS,
    run: RunWorkflow,
    app: String,
    /// `true` if no other process will ever have the executor id of this one.
    is_unique: bool,
    /// The limit on concurrent runs. `None`: no limit.
    limiter: Option<ConcurrencyLimiter>,
    /// The tokio runtime that DBOS's tasks run on.
    on: Handle,
    /// A weak reference to this engine for tasks that outlive a method call.
    weak_engine: WeakEngine,
    /// Runs that were started here and whose workflows have not started executing yet.
    pending_runs: Mutex<HashMap<RunId, PendingRun>>,
}

/// A run that was started in this process.
#[derive(Debug)]
pub(crate) struct PendingRun {
    /// The registration that the run's handles wait for.
    pub(crate) registration: RunRegistration,
    /// `true` if the run needs permits of its own. A run that a tool starts does not need them: the run of the tool
    /// already holds a permit, and the tool may wait for the new run.
    pub(crate) needs_permit: bool,
}

impl DurableEngine {
    /// Creates the engine of this process without launching DBOS. Must be called on the tokio runtime that executes
    /// runs.
    ///
    /// # Errors
    /// Returns the converted errors of DBOS.
    pub(crate) fn new(context: Arc<RuntimeContext>, database: &Database) -> Result<Arc<Self>> {
        let (dbos, weak_engine) =
            (DBOS::new(database.to_dbos(workflow::BODY)), WeakEngine::default());
        let run = workflow::register(&dbos, Arc::clone(&weak_engine));
        let engine = Arc::new(Self {
            context,
            dbos,
            run: run.map_err(|error| failure::from_dbos("register the workflow", &error))?,
            app: database.app.clone(),
            is_unique: database.executor.is_none(),
            limiter: database.max_runs.map(ConcurrencyLimiter::new),
            on: Handle::current(),
            weak_engine,
            pending_runs: Mutex::default(),
        });
        drop(engine.weak_engine.set(Arc::downgrade(&engine)));
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

    pub(crate) fn limiter(&self) -> Option<&ConcurrencyLimiter> {
        self.limiter.as_ref()
    }

    /// Removes and returns a pending run. Returns `None` if the run was started elsewhere.
    pub(crate) fn take_pending(&self, run: &RunId) -> Option<PendingRun> {
        self.pending_runs().remove(run)
    }

    fn pending_runs(&self) -> MutexGuard<'_, HashMap<RunId, PendingRun>> {
        self.pending_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a DBOS operation in a separate task with a timeout. A separate task is needed because DBOS rejects many
    /// operations inside a step, and children start there. DBOS itself retries an unavailable database forever.
    async fn call_dbos<T: Send + 'static>(
        &self,
        what: &'static str,
        limit: Duration,
        request: impl Future<Output = Result<T, dbos::Error>> + Send + 'static,
    ) -> Result<T> {
        let task = self.on.spawn(tokio::time::timeout(limit, request));
        match task.await {
            Ok(Ok(Ok(done))) => Ok(done),
            Ok(Ok(Err(error))) => Err(failure::from_dbos(what, &error)),
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

    /// Starts the workflow of a run.
    async fn start(&self, run_ref: &RunRef) -> Result<()> {
        let id = run_ref.workflow_id(&self.app);
        let (run, run_ref, dbos) = (self.run.clone(), run_ref.clone(), self.dbos.clone());
        let start = async move {
            delete_stale_row(&dbos, &id, &run_ref).await?;
            let options = StartOptions {
                workflow_id: Some(&id),
                timeout: Timeout::None,
                ..StartOptions::default()
            };
            run.start_with(run_ref, options).lift::<dbos::EngineOnly>().await
        };
        // The timeout is the lease duration, because after that another process may have taken over the run.
        let started = self.call_dbos("start the run's workflow", self.context.lease, start).await?;
        // DBOS records the end of a workflow after the run has ended. A shutdown waits for that, and the task keeps the
        // engine alive until then.
        let (engine, context) =
            (self.weak_engine.get().and_then(Weak::upgrade), Arc::clone(&self.context));
        drop(self.context.tasks.spawn(async move {
            tokio::select! {
                biased;
                ended = started.result() => drop(ended),
                () = workflow::until_shutdown(&context) => {}
            }
            drop(engine);
        }));
        Ok(())
    }

    /// Cancels the workflow of a superseded run. This stops its current work early; otherwise the workflow would
    /// detect the takeover with its next append.
    async fn cancel(&self, run_ref: &RunRef) {
        let id = run_ref.workflow_id(&self.app);
        let dbos = self.dbos.clone();
        let cancel = async move { dbos.cancel(&id).await };
        if let Err(error) = self.call_dbos("cancel a workflow", BEST_EFFORT_LIMIT, cancel).await {
            tracing::warn!(session = %run_ref.session, %error, "a superseded workflow was not cancelled");
        }
    }
}

#[async_trait]
impl Engine for DurableEngine {
    fn kind(&self) -> &'static str {
        "durable"
    }

    /// Returns `false` if this process has an executor id, because another process with the same id may continue its
    /// runs.
    fn is_in_process(&self) -> bool {
        self.is_unique
    }

    async fn start(&self, started: StartedRun) -> Result<Option<Arc<LiveRun>>> {
        let live = Arc::clone(started.driver.live());
        let (replaced, needs_permit) = (started.superseded.clone(), !started.in_tool);
        let run_ref = started.in_work_items();
        if let Some(replaced) = replaced {
            self.cancel(&replaced).await;
        }
        // Ends all waits for the run even if the workflow is dropped.
        let registration = RunRegistration::new(&self.context, &live);
        self.pending_runs().insert(run_ref.run.clone(), PendingRun { registration, needs_permit });
        if let Err(error) = self.start(&run_ref).await {
            drop(self.take_pending(&run_ref.run));
            return Err(error);
        }
        Ok(Some(live))
    }

    async fn stop_reason(&self, run_ref: &RunRef) -> Option<Error> {
        let id = run_ref.workflow_id(&self.app);
        let dbos = self.dbos.clone();
        let look = async move { row(&dbos, &id, true).await };
        let row = match self.call_dbos("read a workflow", BEST_EFFORT_LIMIT, look).await {
            Ok(row) => row.filter(|row| belongs_to(row, run_ref))?,
            Err(error) => {
                tracing::warn!(session = %run_ref.session, %error, "the status of the run's workflow is unknown");
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
            WorkflowStatus::MaxRecoveryAttemptsExceeded => failure::too_many_recoveries(),
            // The end of a successful workflow is in the log, where the caller will find it.
            _ => return None,
        };
        Some(error.with_context("session", &run_ref.session).with_context("run", &run_ref.run))
    }

    async fn shutdown(&self) {
        self.dbos.shutdown().await;
    }
}

/// Shuts DBOS down when the last reference to the runtime is dropped. No workflow is running then, because each
/// workflow holds a reference.
impl Drop for DurableEngine {
    fn drop(&mut self) {
        if self.dbos.is_launched() {
            let dbos = self.dbos.clone();
            drop(self.on.spawn(async move { dbos.shutdown().await }));
        }
    }
}

/// Returns the row of a workflow.
async fn row(dbos: &DBOS, id: &str, whole: bool) -> Result<Option<WorkflowRecord>, dbos::Error> {
    let filter =
        WorkflowFilter { workflow_ids: vec![id], load_output: whole, ..WorkflowFilter::default() };
    Ok(dbos.list_workflows(&filter).await?.pop())
}

/// Returns `true` if a row belongs to this run. Workflow ids repeat when a session is deleted and created again.
fn belongs_to(row: &WorkflowRecord, run_ref: &RunRef) -> bool {
    run_of(row).is_none_or(|other| other.run == run_ref.run)
}

/// Returns the run of a row.
pub(crate) fn run_of(row: &WorkflowRecord) -> Option<RunRef> {
    row.input.as_deref().and_then(|input| serde_json::from_str(input).ok())
}

/// Deletes a row with the same id that belongs to another run. Otherwise DBOS would return the old workflow.
async fn delete_stale_row(dbos: &DBOS, id: &str, run_ref: &RunRef) -> Result<(), dbos::Error> {
    let Some(old) = row(dbos, id, false).await?.filter(|row| !belongs_to(row, run_ref)) else {
        return Ok(());
    };
    tracing::info!(workflow = old.workflow_id, "removing the rows of a deleted session");
    dbos.cancel(id).await?;
    dbos.delete(id).await
}
