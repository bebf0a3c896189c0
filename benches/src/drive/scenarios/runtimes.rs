//! Every runtime on the same store, by how many sessions are under way at once.

use anyhow::{Context as _, Result};

use super::{least, repeat};
use crate::drive::Bench;
use crate::drive::report::Best;
use crate::job::{Engine, Job, Subject, Wire, Work};

const SUBJECTS: [Subject; 3] =
    [Subject::PostgresPerEffect, Subject::DurablePostgres, Subject::TemporalPostgres];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    speed(bench).await?;
    traces(bench).await
}

/// Steps per second, and the time and the processor's time of a step.
async fn speed(bench: &mut Bench) -> Result<()> {
    let at_once: &[u32] = if bench.quick { &[2] } else { &[1, 32, 256] };
    for at_once in at_once {
        let job = |subject: &Subject| Job {
            warm: bench.often((*at_once).min(32), 0),
            runs: bench.often((*at_once).max(16), 2),
            at_once: *at_once,
            beside: false,
            ..bench.client.job(*subject, Wire::Sse, Work::USUAL)
        };
        let jobs: Vec<Job> = SUBJECTS.iter().map(job).collect();
        let measured = repeat(bench, 1, &jobs).await?;
        for ((subject, job), measured) in SUBJECTS.iter().zip(&jobs).zip(&measured) {
            let seconds = |wall_ns: u64| wall_ns as f64 / 1e9;
            let steps = measured.iter().map(|it| job.steps() as f64 / seconds(it.outcome.wall_ns));
            let steps = Best::most(steps);
            let step = |run_ns: u64| run_ns as f64 / 1e6 / f64::from(job.work.steps());
            let step = least(measured, |it| step(it.outcome.run_ns_median));
            let cpu = least(measured, |it| super::micros(it.outcome.cpu_ns, job.steps()));
            let report = &mut bench.report;
            report.add_best(&format!("runtimes.steps.{at_once}"), subject, steps, "steps/s");
            report.add_best(&format!("runtimes.step.{at_once}"), subject, step, "ms");
            report.add_best(&format!("runtimes.cpu.{at_once}"), subject, cpu, "µs/step");
        }
    }
    Ok(())
}

/// What a step leaves with the engine, beside the log that all have alike: rows of DBOS, events of Temporal.
async fn traces(bench: &mut Bench) -> Result<()> {
    let steps: &[u32] = if bench.quick { &[4] } else { &[10, 100] };
    for steps in steps {
        for subject in SUBJECTS {
            let job = bench.client.job(subject, Wire::Sse, Work::tools(*steps));
            let measured = bench.client.measure(&Job { inspect: true, ..job.clone() }).await?;
            let left = measured.outcome.left.context("what was left was not looked at")?;
            let each = |value: u64| value as f64 / job.steps() as f64;
            let report = &mut bench.report;
            let mut add = |what: &str, value: u64, unit| {
                report.add(&format!("runtimes.{what}.{steps}"), subject, each(value), unit);
            };
            if subject.engine() != Engine::Local {
                add("rows", left.engine.rows, "rows");
                add("bytes", left.engine.bytes, "B");
            }
            add("wal", left.traces.written_bytes, "B");
        }
    }
    Ok(())
}
