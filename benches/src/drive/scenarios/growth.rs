//! The growth of a step's cost with the length of the history.

use anyhow::{Context as _, Result};

use crate::drive::Bench;
use crate::drive::counter::Counter;
use crate::job::{Job, Seen, Subject, Wire, Work};

const SUBJECTS: [Subject; 5] = [
    Subject::Bare,
    Subject::Memory,
    Subject::SqlitePerStep,
    Subject::PostgresPerStep,
    Subject::RedisPerStep,
];

/// The number of steps before and after a step that are averaged with it.
const AROUND: u32 = 2;

/// The last step whose instructions are counted, because counting is slow.
const LAST_COUNTED: u32 = 400;

/// A growing session: the group of its figures, its name in them, and the steps that are measured.
pub(super) struct Growing<'a> {
    pub(super) group: &'a str,
    pub(super) name: String,
    /// One run. Its number of tool calls follows from the steps.
    pub(super) job: Job,
    pub(super) steps: &'a [u32],
    /// The maximum ratio of the 200th step to the first measured one.
    pub(super) aim: Option<f64>,
    pub(super) counts_instructions: bool,
}

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let steps: &[u32] = if bench.quick { &[4, 8] } else { &[10, 200, 400, 1000] };
    for subject in SUBJECTS {
        let is_fast = matches!(subject, Subject::Bare | Subject::Memory);
        let runs = bench.repetitions(if is_fast { 20 } else { 4 }, 1);
        let growing = Growing {
            group: "growth",
            name: subject.to_string(),
            job: Job { runs, ..bench.client.job(subject, Wire::Sse, Work::USUAL) },
            steps,
            aim: (subject != Subject::Bare).then_some(1.5),
            counts_instructions: is_fast || subject == Subject::SqlitePerStep,
        };
        grow(bench, &growing).await?;
    }
    Ok(())
}

/// Measures the time and the instructions of a growing session's steps.
pub(super) async fn grow(bench: &mut Bench, growing: &Growing<'_>) -> Result<()> {
    let Growing { group, name, job, steps, .. } = growing;
    let calls = steps.last().map_or(0, |step| step + AROUND);
    bench.server.forget().await?;
    bench.client.measure(&Job { work: job.work.with_calls(calls), ..job.clone() }).await?;
    let seen = bench.server.seen().await?;
    let mut first = None;
    for step in *steps {
        let gap = gap(&seen, *step).context("the server did not see that step")?;
        bench.report.add(&format!("{group}.at-{step}"), name, gap, "µs");
        let first = *first.get_or_insert(gap);
        if gap != first {
            let figure = bench.report.add(&format!("{group}.{step}"), name, gap / first, "×");
            growing.aim.filter(|_| *step == 200).map(|most| figure.at_most(most));
        }
    }
    if growing.counts_instructions {
        instructions(bench, growing).await?;
    }
    let sizes = [0].iter().chain(*steps).filter_map(|step| seen.steps.get(*step as usize));
    let sizes: Vec<_> = sizes.map(|step| step.body_bytes.to_string()).collect();
    eprintln!("  request bodies of {name}, in bytes: {}", sizes.join(", "));
    Ok(())
}

/// Returns the median time from a reply to the request of this step, as measured by the server.
fn gap(seen: &Seen, step: u32) -> Option<f64> {
    let around = seen.steps.get((step - AROUND) as usize..=(step + AROUND) as usize)?;
    let sum: u64 = around.iter().map(|step| step.gap_ns_median).sum();
    Some(sum as f64 / around.len() as f64 / 1e3)
}

/// Measures the instructions of the steps around each of the given steps.
async fn instructions(bench: &mut Bench, growing: &Growing<'_>) -> Result<()> {
    let Growing { group, name, job, steps, .. } = growing;
    if bench.counter == Counter::None {
        return Ok(());
    }
    let mut first = None;
    for step in steps.iter().filter(|step| **step <= LAST_COUNTED) {
        let count = |calls| {
            let job = Job { runs: 2, work: job.work.with_calls(calls), ..job.clone() };
            let (counter, client) = (bench.counter, &bench.client);
            async move { counter.count(client, &job).await }
        };
        let (few, many) = (count(step - 5).await?, count(step + 5).await?);
        let Some((few, many)) = few.zip(many) else { return Ok(()) };
        let value = (many - few) / 20.0 / 1e6;
        bench.report.add(&format!("{group}.instructions-at-{step}"), name, value, "M");
        let first = *first.get_or_insert(value);
        if value != first {
            let key = format!("{group}.instructions-{step}");
            bench.report.add(&key, name, value / first, "×");
        }
    }
    Ok(())
}
