//! The measured client. It runs one job and prints its outcome as one JSON object.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread;

use anyhow::{Context as _, Result};

use crate::job::{Job, Outcome, Subject, Work};
use crate::pin;

mod alone;
mod bare;
mod discard;
mod engine;
mod left;
mod load;
mod ours;
mod place;
mod probe;
mod process;

pub(crate) use probe::run as probe;

/// The system prompt of all subjects.
const PROMPT: &str = "You add numbers. Use the tool for each addition, one at a time.";

/// The user message of all subjects.
const INPUT: &str = "Count up with the tool, then hand in the last sum.";

/// A subject that is ready to run.
pub(crate) trait Runs: Send + Sync + 'static {
    /// Makes one run and checks its result.
    fn once(&self) -> impl Future<Output = Result<()>> + Send;
}

/// Runs the job and prints its outcome.
///
/// # Errors
/// Fails if a run fails or has a wrong result.
pub(crate) fn run(job: &str) -> Result<()> {
    let job: Job = serde_json::from_str(job).context("the job is unreadable")?;
    if job.same_processor {
        pin::to_last_processor()?;
    }
    println!("{}", serde_json::to_string(&on_threads(&job)?)?);
    Ok(())
}

/// Splits the job among threads, each with its own tokio runtime, store and client. Returns the
/// outcome of the last thread to end.
fn on_threads(job: &Job) -> Result<Outcome> {
    let threads = job.threads;
    let (warm, runs, at_once) = (job.warm / threads, job.runs / threads, job.at_once / threads);
    let share = Job { warm, runs, at_once, ..job.clone() };
    let warmed = Barrier::new(threads as usize);
    let outcomes: Result<Vec<Outcome>> = thread::scope(|scope| {
        let handles: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| on_thread(&share, &warmed))).collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    outcomes?
        .into_iter()
        .max_by_key(|outcome| outcome.wall_ns)
        .context("a job needs at least one thread")
}

fn on_thread(job: &Job, warmed: &Barrier) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(job, warmed))
}

async fn measure(job: &Job, warmed: &Barrier) -> Result<Outcome> {
    match (job.subject, job.work) {
        (Subject::Bare, Work::Tools { calls, .. }) => {
            load::run(bare::ToolRuns::new(job, calls)?, job, warmed).await
        }
        (Subject::Bare, Work::Text { chunks, .. }) => {
            load::run(bare::TextRuns::new(job, chunks)?, job, warmed).await
        }
        (Subject::BareDbos, _) => {
            load::run(alone::dbos::Workflows::new(job).await?, job, warmed).await
        }
        (Subject::BareTemporal, _) => {
            load::run(alone::temporal::Workflows::new(job).await?, job, warmed).await
        }
        (subject, _) => {
            let store = subject.store().context("the bare loop does not support this work")?;
            ours::measure(job, store, warmed).await
        }
    }
}
