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

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let steps: &[u32] = if bench.quick { &[4, 8] } else { &[10, 200, 400, 1000] };
    let calls = steps.last().map_or(0, |step| step + AROUND);
    for subject in SUBJECTS {
        bench.server.forget().await?;
        let job = bench.client.job(subject, Wire::Sse, Work::tools(calls));
        let runs = if matches!(subject, Subject::Bare | Subject::Memory) { 20 } else { 4 };
        bench.client.measure(&Job { runs: bench.repetitions(runs, 1), ..job }).await?;
        let seen = bench.server.seen().await?;
        let mut first = None;
        for step in steps {
            let gap = gap(&seen, *step).context("the server did not see that step")?;
            bench.report.add(&format!("growth.at-{step}"), subject, gap, "µs");
            let first = *first.get_or_insert(gap);
            if gap != first {
                let key = format!("growth.{step}");
                let figure = bench.report.add(&key, subject, gap / first, "×");
                if *step == 200 && subject != Subject::Bare {
                    figure.at_most(1.5);
                }
            }
        }
        if matches!(subject, Subject::Bare | Subject::Memory | Subject::SqlitePerStep) {
            let steps = steps.iter().copied().filter(|step| *step <= LAST_COUNTED).collect();
            instructions(bench, subject, steps).await?;
        }
        let sizes = [0].iter().chain(steps).filter_map(|step| seen.steps.get(*step as usize));
        let sizes: Vec<_> = sizes.map(|step| step.body_bytes.to_string()).collect();
        eprintln!("  request bodies of {subject}, in bytes: {}", sizes.join(", "));
    }
    Ok(())
}

/// Returns the median time from a reply to the request of this step, as measured by the server.
fn gap(seen: &Seen, step: u32) -> Option<f64> {
    let around = seen.steps.get((step - AROUND) as usize..=(step + AROUND) as usize)?;
    let sum: u64 = around.iter().map(|step| step.gap_ns_median).sum();
    Some(sum as f64 / around.len() as f64 / 1e3)
}

/// Measures the instructions of the steps around each of the given steps.
async fn instructions(bench: &mut Bench, subject: Subject, steps: Vec<u32>) -> Result<()> {
    if bench.counter == Counter::None {
        return Ok(());
    }
    let mut first = None;
    for step in steps {
        let count = |calls| {
            let job = bench.client.job(subject, Wire::Sse, Work::tools(calls));
            let (counter, client) = (bench.counter, &bench.client);
            async move { counter.count(client, &Job { runs: 2, ..job }).await }
        };
        let (few, many) = (count(step - 5).await?, count(step + 5).await?);
        let Some((few, many)) = few.zip(many) else { return Ok(()) };
        let value = (many - few) / 20.0 / 1e6;
        bench.report.add(&format!("growth.instructions-at-{step}"), subject, value, "M");
        let first = *first.get_or_insert(value);
        if value != first {
            let key = format!("growth.instructions-{step}");
            bench.report.add(&key, subject, value / first, "×");
        }
    }
    Ok(())
}
