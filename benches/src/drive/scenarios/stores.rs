//! The stores, by the number of concurrent sessions.

use anyhow::Result;

use super::{least, repeat};
use crate::drive::Bench;
use crate::drive::report::Best;
use crate::job::{Job, Subject, Wire, Work};

const SUBJECTS: [Subject; 7] = [
    Subject::Memory,
    Subject::SqlitePerEffect,
    Subject::SqlitePerStep,
    Subject::PostgresPerEffect,
    Subject::PostgresPerStep,
    Subject::RedisPerEffect,
    Subject::RedisPerStep,
];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let at_once: &[u32] = if bench.quick { &[2] } else { &[1, 32, 256] };
    for at_once in at_once {
        let job = |subject: &Subject| Job {
            warm: bench.repetitions(*at_once, 0),
            runs: bench.repetitions((at_once * 2).max(64), 4),
            at_once: *at_once,
            same_processor: false,
            ..bench.client.job(*subject, Wire::Sse, Work::USUAL)
        };
        let jobs: Vec<Job> = SUBJECTS.iter().map(job).collect();
        let measured = repeat(bench, bench.repetitions(2, 1), &jobs).await?;
        for ((subject, job), measured) in SUBJECTS.iter().zip(&jobs).zip(&measured) {
            let seconds = |wall_ns: u64| wall_ns as f64 / 1e9;
            let steps = measured
                .iter()
                .map(|measured| job.steps() as f64 / seconds(measured.outcome.wall_ns));
            let steps = Best::most(steps);
            let run = least(measured, |measured| measured.outcome.run_ns_median as f64 / 1e6);
            let figure = bench.report.add_best(
                &format!("stores.steps.{at_once}"),
                subject,
                steps,
                "steps/s",
            );
            if *at_once > 1 && *subject == Subject::PostgresPerStep {
                figure.at_least(3000.0);
            }
            bench.report.add_best(&format!("stores.run.{at_once}"), subject, run, "ms");
        }
    }
    Ok(())
}
