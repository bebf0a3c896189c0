//! Workers, which execute runs on a separate thread.

use std::collections::HashSet;
use std::error::Error as StdError;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use temporalio_sdk::runtime::WorkflowErrorType;
use temporalio_sdk::runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder};
use temporalio_sdk::{Runtime as SdkRuntime, Worker, WorkerOptions};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::activities::{Activities, Signals};
use crate::runtime::TemporalRuntime;
use crate::workflow::AgentRun;

/// A builder for [`TemporalWorker`]. See [`TemporalWorker::builder`].
#[derive(Debug)]
#[must_use = "call `start` to get the worker"]
pub struct TemporalWorkerBuilder {
    runtime: TemporalRuntime,
    activities: usize,
    workflows: usize,
    graceful_shutdown: Duration,
    sticky_timeout: Duration,
}

impl TemporalWorkerBuilder {
    /// Sets the maximum number of concurrent activities: model calls, tools and waiting parents. Default: 200.
    pub fn activities(mut self, activities: usize) -> Self {
        self.activities = activities;
        self
    }

    /// Sets the maximum number of workflows that are cached between their work items. A workflow that is no longer
    /// cached is replayed from its history. Default: 1,000.
    pub fn cached_workflows(mut self, workflows: usize) -> Self {
        self.workflows = workflows;
        self
    }

    /// Sets how long running activities may take to complete after [`shutdown`](TemporalWorker::shutdown) was called.
    /// After that they are left to other workers. Default: 10 s.
    pub fn graceful_shutdown(mut self, period: Duration) -> Self {
        self.graceful_shutdown = period;
        self
    }

    /// Sets how long a workflow task waits for the worker that has cached the workflow before another worker can take
    /// it. Default: 2 s.
    pub fn sticky_timeout(mut self, timeout: Duration) -> Self {
        self.sticky_timeout = timeout;
        self
    }

    /// Starts a thread that runs the worker on the current tokio runtime, and waits until the worker is created.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if options contradict each other, and [`ErrorCode::Internal`] if no thread
    /// could be started. Errors of the server, such as a missing namespace, are returned by
    /// [`ended`](TemporalWorker::ended).
    ///
    /// # Panics
    /// If it is called outside of a tokio runtime.
    pub async fn start(self) -> Result<TemporalWorker> {
        let (started_tx, started_rx) = oneshot::channel();
        let (end_tx, end_rx) = watch::channel(None);
        let signals = Signals::default();
        let gone = signals.gone.clone();
        let ending = signals.ending.clone();
        let tokio = Handle::current();
        let work = move || {
            let end = tokio.block_on(run(self, signals, started_tx));
            end_tx.send_replace(Some(end));
        };
        let thread = thread::Builder::new().name("temporal-worker".to_owned());
        thread.spawn(work).map_err(|error| {
            Error::new(ErrorCode::Internal, "no thread could be started for the worker")
                .with_source(error)
        })?;
        match started_rx.await {
            Ok(Started(stop)) => {
                Ok(TemporalWorker { stop, ending, end_rx, _gone: gone.drop_guard() })
            }
            Err(_) => Err(end_of(end_rx)
                .await
                .err()
                .unwrap_or_else(|| closed("the worker stopped during start-up"))),
        }
    }
}

/// A worker that executes the runs of a task queue until it is shut down.
///
/// Dropping the worker has the effect of a crash: its activities are dropped while running, and other workers retry
/// them after their heartbeats time out.
pub struct TemporalWorker {
    stop: StopFn,
    ending: CancellationToken,
    end_rx: watch::Receiver<Option<End>>,
    _gone: DropGuard,
}

impl std::fmt::Debug for TemporalWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemporalWorker").finish_non_exhaustive()
    }
}

impl TemporalWorker {
    /// Returns a builder for a worker that executes the runs of this runtime's task queue, with its store, model and
    /// agents.
    pub fn builder(runtime: &TemporalRuntime) -> TemporalWorkerBuilder {
        TemporalWorkerBuilder {
            runtime: runtime.clone(),
            activities: 200,
            workflows: 1_000,
            graceful_shutdown: Duration::from_secs(10),
            sticky_timeout: Duration::from_secs(2),
        }
    }

    /// Stops accepting activities, waits for the running ones for the graceful shutdown period, and leaves the rest to
    /// other workers.
    ///
    /// # Cancel safety
    /// Dropping the future drops the worker, which has the effect of a crash. To limit the time, set
    /// [`graceful_shutdown`](TemporalWorkerBuilder::graceful_shutdown).
    ///
    /// # Errors
    /// Returns the reason if the worker had already ended because it could not continue.
    pub async fn shutdown(self) -> Result<()> {
        self.ending.cancel();
        (self.stop)();
        end_of(self.end_rx.clone()).await
    }

    /// Waits until the worker has ended by itself, which happens only if it cannot continue.
    ///
    /// # Errors
    /// Returns the reason why the worker cannot continue.
    pub async fn ended(&self) -> Result<()> {
        end_of(self.end_rx.clone()).await
    }
}

/// A function that requests the shutdown of a worker.
type StopFn = Box<dyn Fn() + Send + Sync>;

/// The outcome of a worker, in a form that can be returned to several callers.
type End = Result<(), Failure>;

/// The reason why a worker cannot continue.
#[derive(Debug, Clone)]
struct Failure {
    code: ErrorCode,
    message: &'static str,
    cause: Arc<dyn StdError + Send + Sync>,
}

impl From<Failure> for Error {
    fn from(Failure { code, message, cause }: Failure) -> Self {
        Self::new(code, message).with_source(cause)
    }
}

/// The message of a started worker, with its stop function.
struct Started(StopFn);

async fn end_of(mut end_rx: watch::Receiver<Option<End>>) -> Result<()> {
    let end = end_rx.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
    match end {
        Some(Ok(())) => Ok(()),
        Some(Err(failure)) => Err(failure.into()),
        None => Err(closed("the worker's thread ended unexpectedly")),
    }
}

fn closed(message: &'static str) -> Error {
    Error::new(ErrorCode::Closed, message)
}

/// Runs a worker until it ends.
async fn run(
    builder: TemporalWorkerBuilder,
    signals: Signals,
    started_tx: oneshot::Sender<Started>,
) -> End {
    let gone = signals.gone.clone();
    let mut worker = create(builder, signals)?;
    let stop = worker.shutdown_handle();
    if started_tx.send(Started(Box::new(worker.shutdown_handle()))).is_err() {
        return Ok(());
    }
    tokio::select! {
        biased;
        () = gone.cancelled() => {
            // Stops polling, without further messages to the server.
            stop();
            Ok(())
        }
        ended = worker.run() => ended.map_err(|error| {
            tracing::error!(error = &error as &dyn StdError, "the worker cannot continue");
            let cause = Arc::new(error);
            Failure { code: ErrorCode::Closed, message: "the worker cannot continue", cause }
        }),
    }
}

fn create(builder: TemporalWorkerBuilder, signals: Signals) -> Result<Worker, Failure> {
    let TemporalWorkerBuilder { runtime, activities, workflows, graceful_shutdown, sticky_timeout } =
        builder;
    let server = &runtime.engine().server;
    let slots = TunerHolder::builder()
        .workflow_task_slot_supplier(FixedSizeSlotSupplier::new(100))
        .activity_task_slot_supplier(FixedSizeSlotSupplier::new(activities))
        .local_activity_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .nexus_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .build();
    let engine = runtime.engine();
    let activities_impl = Activities::new(
        runtime.erased(),
        engine.server.clone(),
        engine.pending_children.clone(),
        signals,
        activities,
    );
    let options = WorkerOptions::new(&*server.queue)
        .register_workflow::<AgentRun>()
        .map_err(|error| invalid("the Temporal SDK rejected the workflow definition", error))?
        .register_activities(activities_impl)
        .tuner(slots)
        .max_cached_workflows(workflows)
        .graceful_shutdown_period(graceful_shutdown)
        .sticky_queue_schedule_to_start_timeout(sticky_timeout)
        // Cancellations are delivered with the responses to heartbeats.
        .max_heartbeat_throttle_interval(server.limits.heartbeat() / 3)
        // A workflow whose code does not match its history fails, instead of retrying its workflow task forever.
        // Another process then takes over the run in a new workflow.
        .workflow_failure_errors(HashSet::from([WorkflowErrorType::Nondeterminism]))
        .build();
    let sdk = SdkRuntime::from_current_tokio(temporalio_sdk::runtime::RuntimeOptions::default())
        .map_err(|error| invalid("the worker could not be started", error))?;
    Worker::new(&sdk, server.client.clone(), options)
        .map_err(|error| invalid("the Temporal SDK rejected the worker options", error))
}

fn invalid(message: &'static str, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Failure {
    Failure { code: ErrorCode::ConfigInvalid, message, cause: cause.into().into() }
}
