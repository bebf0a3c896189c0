//! The memory of a run that waits for a slow model, and of a suspended run.

use anyhow::Result;

use super::{least, repeat};
use crate::drive::Bench;
use crate::job::{Ending, Job, Subject, Wire, Work};

const WAITING: [Subject; 5] = [
    Subject::Bare,
    Subject::Memory,
    Subject::SqlitePerEffect,
    Subject::PostgresPerEffect,
    Subject::RedisPerEffect,
];

const SUSPENDED: [Subject; 4] =
    [Subject::Memory, Subject::SqlitePerStep, Subject::PostgresPerStep, Subject::RedisPerStep];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    waiting(bench).await?;
    suspended(bench).await
}

async fn waiting(bench: &mut Bench) -> Result<()> {
    let at_once = bench.repetitions(1000, 20);
    let delay_ms = u64::from(bench.repetitions(1000, 100));
    let work = Work::Tools { calls: 3, delay_ms, ending: Ending::Native };
    let mut bare = 0.0;
    for subject in WAITING {
        let one = Job { same_processor: false, ..bench.client.job(subject, Wire::Sse, work) };
        let many = Job { runs: at_once, at_once, ..one.clone() };
        let measured = repeat(bench, bench.repetitions(2, 1), &[one, many]).await?;
        let [one, many] = measured.as_slice() else { continue };
        let peak = |measured| least(measured, |measured| measured.outcome.peak_bytes as f64).value;
        let each = (peak(many) - peak(one)) / f64::from(at_once - 1) / 1e3;
        if subject == Subject::Bare {
            bare = each;
        }
        let figure = bench.report.add("memory.waiting", subject, each, "kB").compared_with(bare);
        if subject == Subject::Memory {
            figure.at_most(40.0);
        }
    }
    Ok(())
}

/// Measures suspended runs. They keep no memory, except in the memory store. The first runs fill
/// caches that do not grow further: the largest one, `StreamCache`, keeps 4,096 streams and up to an
/// eighth more.
async fn suspended(bench: &mut Bench) -> Result<()> {
    let (few, many) = (bench.repetitions(5000, 4), bench.repetitions(15_000, 8));
    for subject in SUSPENDED {
        let job = bench.client.job(subject, Wire::Sse, Work::Suspend);
        let job = |runs| Job { runs, at_once: few.min(64), same_processor: false, ..job.clone() };
        let measured = repeat(bench, 1, &[job(few), job(many)]).await?;
        let [few_of_them, many_of_them] = measured.as_slice() else { continue };
        let peak = |measured| least(measured, |measured| measured.outcome.peak_bytes as f64).value;
        let each = (peak(many_of_them) - peak(few_of_them)) / f64::from(many - few) / 1e3;
        let figure = bench.report.add("memory.suspended", subject, each, "kB");
        if subject != Subject::Memory {
            figure.at_most(0.1);
        }
    }
    Ok(())
}
