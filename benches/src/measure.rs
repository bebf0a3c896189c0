//! The client under measure: one job, then its figures as one JSON object.

use anyhow::{Context as _, Result};

use crate::job::{Job, Outcome, Subject, Work};
use crate::pin;

mod bare;
mod left;
mod load;
mod ours;
mod process;

/// The system prompt of all subjects.
const PROMPT: &str = "You add numbers. Use the tool for each addition, one at a time.";

/// The user's message of all subjects.
const INPUT: &str = "Count up with the tool, then hand in the last sum.";

/// One subject, ready to run.
pub(crate) trait Runs: Send + Sync + 'static {
    /// Makes one run and checks its answer.
    fn once(&self) -> impl Future<Output = Result<()>> + Send;
}

/// Does the job and prints what it found.
///
/// # Errors
/// If a run fails or its answer is wrong.
pub(crate) fn run(job: &str) -> Result<()> {
    let job: Job = serde_json::from_str(job).context("the job cannot be read")?;
    if job.beside {
        pin::to_last_processor()?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(measure(&job))?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

async fn measure(job: &Job) -> Result<Outcome> {
    match (job.subject, job.work) {
        (Subject::Bare, Work::Tools { calls, .. }) => {
            load::run(bare::ToolRuns::new(job, calls)?, job).await
        }
        (Subject::Bare, Work::Text { chunks, .. }) => {
            load::run(bare::TextRuns::new(job, chunks)?, job).await
        }
        (Subject::Memory, _) => ours::on_memory(job).await,
        _ => ours::on_sqlite(job).await,
    }
}
