//! Every runtime on the same store, by how many sessions are under way at once.

use anyhow::{Context as _, Result};

use super::{least, repeat};
use crate::drive::Bench;
use crate::drive::client::Measured;
use crate::drive::report::Best;
use crate::job::{Engine, Job, Subject, Wire, Work};

/// Each with what it stands beside: the engine alone, with as many steps as there are effects.
const SUBJECTS: [(Subject, Option<Subject>); 3] = [
    (Subject::PostgresPerEffect, None),
    (Subject::DurablePostgres, Some(Subject::BareDbos)),
    (Subject::TemporalPostgres, Some(Subject::BareTemporal)),
];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    speed(bench).await?;
    traces(bench).await
}

/// Steps per second, and the time and the processor's time of a step.
async fn speed(bench: &mut Bench) -> Result<()> {
    let at_once: &[u32] = if bench.quick { &[2] } else { &[1, 32, 256] };
    for at_once in at_once {
        for (subject, alone) in SUBJECTS {
            let job = |subject: Subject| Job {
                warm: bench.often((*at_once).min(32), 0),
                runs: bench.often((*at_once).max(16), 2),
                at_once: *at_once,
                beside: false,
                ..bench.client.job(subject, Wire::Sse, Work::USUAL)
            };
            let jobs: Vec<Job> = alone.into_iter().chain([subject]).map(job).collect();
            let measured = repeat(bench, TIMES, &jobs).await?;
            let mut alone: Option<[Figure; 3]> = None;
            for (job, measured) in jobs.iter().zip(&measured) {
                let figures = figures(job, measured);
                for (index, (what, best, unit)) in figures.iter().enumerate() {
                    let key = format!("runtimes.{what}.{at_once}");
                    let figure = bench.report.add_best(&key, job.subject, *best, unit);
                    let alone = alone.as_ref().and_then(|alone| alone.get(index));
                    alone.map(|(_, alone, _)| figure.beside(alone.value));
                }
                alone = Some(figures);
            }
        }
    }
    Ok(())
}

/// How often each is measured.
const TIMES: u32 = 2;

/// What it is called, its value, and the unit.
type Figure = (&'static str, Best, &'static str);

/// How fast it was at best.
fn figures(job: &Job, measured: &[Measured]) -> [Figure; 3] {
    let seconds = |wall_ns: u64| wall_ns as f64 / 1e9;
    let each = |it: &Measured| job.steps() as f64 / seconds(it.outcome.wall_ns);
    let step = |run_ns: u64| run_ns as f64 / 1e6 / f64::from(job.work.steps());
    [
        ("steps", Best::most(measured.iter().map(each)), "steps/s"),
        ("step", least(measured, |it| step(it.outcome.run_ns_median)), "ms"),
        ("cpu", least(measured, |it| super::micros(it.outcome.cpu_ns, job.steps())), "µs/step"),
    ]
}

/// What a step leaves with the engine, beside the log that all have alike: rows of DBOS, events of Temporal.
async fn traces(bench: &mut Bench) -> Result<()> {
    let steps: &[u32] = if bench.quick { &[4] } else { &[10, 100] };
    for steps in steps {
        for (subject, _) in SUBJECTS {
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
