//! The wire formats of model servers, compared with Chat Completions, on the memory store.

use anyhow::Result;

use super::growth::{Growing, grow};
use super::{least, micros, repeat};
use crate::drive::Bench;
use crate::job::{Ending, Format, Job, Subject, Wire, Work};

/// A run with ten tool calls. The result is handed in with a call, which every wire format supports.
const WORK: Work = Work::Tools { calls: 10, delay_ms: 0, ending: Ending::Finish };

/// The maximum cost of a wire format in relation to Chat Completions.
const AIM: f64 = 1.3;

/// The maximum growth of a step, as for Chat Completions: replies and results are encoded once.
const GROWTH: f64 = 1.5;

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    chunks(bench).await?;
    steps(bench).await?;
    for format in Format::ALL {
        let runs = bench.repetitions(20, 1);
        let growing = Growing {
            group: "formats",
            name: format.name().to_owned(),
            job: Job { runs, ..job(bench, format, WORK) },
            steps: if bench.quick { &[4, 8] } else { &[10, 200] },
            aim: Some(GROWTH),
            counts_instructions: true,
        };
        grow(bench, &growing).await?;
    }
    Ok(())
}

fn job(bench: &Bench, format: Format, work: Work) -> Job {
    Job { format, ..bench.client.job(Subject::Memory, Wire::Sse, work) }
}

/// Measures the processor time of a chunk of a long text.
async fn chunks(bench: &mut Bench) -> Result<()> {
    let chunks = bench.repetitions(10_000, 100);
    for (key, per_write) in [("formats.chunk", 1), ("formats.chunk, 100 per write", 100)] {
        let work = Work::Text { chunks, per_write };
        let runs = bench.repetitions(20, 1);
        let warm = bench.repetitions(2, 0);
        let jobs = Format::ALL.map(|format| Job { warm, runs, ..job(bench, format, work) });
        compare(bench, key, &jobs, u64::from(runs) * u64::from(chunks)).await?;
    }
    Ok(())
}

/// Measures the processor time and the instructions of a step.
async fn steps(bench: &mut Bench) -> Result<()> {
    let runs = bench.repetitions(500, 2);
    let warm = bench.repetitions(20, 0);
    let jobs = Format::ALL.map(|format| Job { warm, runs, ..job(bench, format, WORK) });
    compare(bench, "formats.step", &jobs, u64::from(runs) * u64::from(WORK.steps())).await?;
    let mut baseline = None;
    for job in &jobs {
        let job = Job { warm: 0, runs: 30, ..job.clone() };
        let Some(count) = bench.counter.per_run(&bench.client, &job).await? else { break };
        let count = count / f64::from(WORK.steps()) / 1e6;
        let baseline = *baseline.get_or_insert(count);
        let figure = bench.report.add("formats.instructions", job.format.name(), count, "M");
        figure.compared_with(baseline).at_most_times_of(Format::OpenaiChat.name(), AIM);
    }
    Ok(())
}

/// Adds the processor time of each job for one of its `parts`.
async fn compare(bench: &mut Bench, key: &str, jobs: &[Job], parts: u64) -> Result<()> {
    let measured = repeat(bench, bench.repetitions(5, 1), jobs).await?;
    let mut baseline = None;
    for (job, measured) in jobs.iter().zip(&measured) {
        let cpu = least(measured, |measured| micros(measured.outcome.cpu_ns, parts));
        let baseline = *baseline.get_or_insert(cpu.value);
        let figure = bench.report.add_best(key, job.format.name(), cpu, "µs");
        figure.compared_with(baseline).at_most_times_of(Format::OpenaiChat.name(), AIM);
    }
    Ok(())
}
