//! Workers: what carries runs out, on a thread of its own.

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

/// A worker under way. See [`TemporalWorker::builder`].
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
    /// How many parts of runs are carried out at once: model calls, tools, and parents that wait. Default 200.
    pub fn activities(mut self, activities: usize) -> Self {
        self.activities = activities;
        self
    }

    /// How many workflows are kept in memory between their parts. Default 1,000; others are read from the server again.
    pub fn cached_workflows(mut self, workflows: usize) -> Self {
        self.workflows = workflows;
        self
    }

    /// How long parts that are under way may take to come to their end after [`shutdown`](TemporalWorker::shutdown) was
    /// called. Default 10 s; then they are left to other workers.
    pub fn graceful_shutdown(mut self, period: Duration) -> Self {
        self.graceful_shutdown = period;
        self
    }

    /// How long a workflow waits for the worker that has it in memory before another one may have it. Default 2 s.
    pub fn sticky_timeout(mut self, timeout: Duration) -> Self {
        self.sticky_timeout = timeout;
        self
    }

    /// Starts the worker. It uses the tokio runtime that this is called on.
    ///
    /// # Errors
    /// [`ErrorCode::ConfigInvalid`] if its options do not go together; [`ErrorCode::Internal`] if no thread could be begun.
    /// What the server has to say of it, such as that there is no such namespace, [`ended`](TemporalWorker::ended) tells.
    pub async fn start(self) -> Result<TemporalWorker> {
        let (begun, begins) = oneshot::channel();
        let (ended, ends) = watch::channel(None);
        let signals = Signals::default();
        let gone = signals.gone.clone();
        let ending = signals.ending.clone();
        let tokio = Handle::current();
        let work = move || {
            let end = tokio.block_on(run(self, signals, begun));
            ended.send_replace(Some(end));
        };
        let thread = thread::Builder::new().name("temporal-worker".to_owned());
        thread.spawn(work).map_err(|error| {
            Error::new(ErrorCode::Internal, "no thread could be begun for the worker")
                .with_source(error)
        })?;
        match begins.await {
            Ok(StartedRun(stop)) => {
                Ok(TemporalWorker { stop, ending, ends, _gone: gone.drop_guard() })
            }
            Err(_) => {
                Err(end_of(ends).await.err().unwrap_or_else(|| closed("the worker ended at once")))
            }
        }
    }
}

/// Carries out the runs of a queue, until it is shut down.
///
/// Dropping it ends it as a kill does: what it was doing is dropped in the middle, and others go on with it when its
/// heartbeats are missed.
pub struct TemporalWorker {
    stop: CancelReason,
    ending: CancellationToken,
    ends: watch::Receiver<Option<End>>,
    _gone: DropGuard,
}

impl std::fmt::Debug for TemporalWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemporalWorker").finish_non_exhaustive()
    }
}

impl TemporalWorker {
    /// Begins to put a worker together that carries out the runs of this runtime's queue, with its store, model and agents.
    pub fn builder(runtime: &TemporalRuntime) -> TemporalWorkerBuilder {
        TemporalWorkerBuilder {
            runtime: runtime.clone(),
            activities: 200,
            workflows: 1_000,
            graceful_shutdown: Duration::from_secs(10),
            sticky_timeout: Duration::from_secs(2),
        }
    }

    /// Stops taking parts, lets those under way come to their end for a while, and leaves the rest to other workers.
    ///
    /// # Errors
    /// What the worker had ended with before.
    pub async fn shutdown(self) -> Result<()> {
        self.ending.cancel();
        (self.stop)();
        end_of(self.ends.clone()).await
    }

    /// Waits until it has ended by itself, which it does only if it cannot go on.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn ended(&self) -> Result<()> {
        end_of(self.ends.clone()).await
    }
}

type CancelReason = Box<dyn Fn() + Send + Sync>;

/// How a worker ended, in a form that many may ask for.
type End = Result<(), Failure>;

/// Why a worker cannot go on.
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

/// What asks a worker that has begun to stop.
struct StartedRun(CancelReason);

async fn end_of(mut ends: watch::Receiver<Option<End>>) -> Result<()> {
    let end = ends.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
    match end {
        Some(Ok(())) => Ok(()),
        Some(Err(failure)) => Err(failure.into()),
        None => Err(closed("the worker's thread is gone")),
    }
}

fn closed(message: &'static str) -> Error {
    Error::new(ErrorCode::Closed, message)
}

/// The life of a worker.
async fn run(
    builder: TemporalWorkerBuilder,
    signals: Signals,
    begun: oneshot::Sender<StartedRun>,
) -> End {
    let gone = signals.gone.clone();
    let mut worker = create(builder, signals)?;
    let stop = worker.shutdown_handle();
    if begun.send(StartedRun(Box::new(worker.shutdown_handle()))).is_err() {
        return Ok(());
    }
    tokio::select! {
        biased;
        () = gone.cancelled() => {
            // It polls no more; nothing else is told to anybody.
            stop();
            Ok(())
        }
        ended = worker.run() => ended.map_err(|error| {
            tracing::error!(error = &error as &dyn StdError, "the worker cannot go on");
            let cause = Arc::new(error);
            Failure { code: ErrorCode::Closed, message: "the worker cannot go on", cause }
        }),
    }
}

fn create(builder: TemporalWorkerBuilder, signals: Signals) -> Result<Worker, Failure> {
    let TemporalWorkerBuilder { runtime, activities, workflows, graceful_shutdown, sticky_timeout } =
        builder;
    let server = runtime.server();
    let slots = TunerHolder::builder()
        .workflow_task_slot_supplier(FixedSizeSlotSupplier::new(100))
        .activity_task_slot_supplier(FixedSizeSlotSupplier::new(activities))
        .local_activity_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .nexus_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .build();
    let carried_out = Activities::new(&runtime, signals, activities);
    let options = WorkerOptions::new(&*server.queue)
        .register_workflow::<AgentRun>()
        .map_err(|error| invalid("the workflow was refused", error))?
        .register_activities(carried_out)
        .tuner(slots)
        .max_cached_workflows(workflows)
        .graceful_shutdown_period(graceful_shutdown)
        .sticky_queue_schedule_to_start_timeout(sticky_timeout)
        // Cancellations come back with heartbeats, and so do signs of life.
        .max_heartbeat_throttle_interval(server.terms.heartbeat() / 3)
        // A workflow of another version than its history is not tried for ever: its run is taken over by one of its own.
        .workflow_failure_errors(HashSet::from([WorkflowErrorType::Nondeterminism]))
        .build();
    let sdk = SdkRuntime::from_current_tokio(temporalio_sdk::runtime::RuntimeOptions::default())
        .map_err(|error| invalid("the worker could not be begun", error))?;
    Worker::new(&sdk, server.client.clone(), options)
        .map_err(|error| invalid("the worker's options were refused", error))
}

fn invalid(message: &'static str, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Failure {
    Failure { code: ErrorCode::ConfigInvalid, message, cause: cause.into().into() }
}
