//! The runtimes on the same store, by the number of concurrent sessions.

use anyhow::{Context as _, Result};

use super::{least, repeat};
use crate::drive::Bench;
use crate::drive::client::Measured;
use crate::drive::report::Best;
use crate::job::{Engine, Job, Subject, Wire, Work};

/// The subjects and their baselines: the engine alone, with as many empty steps as a run has
/// effects.
const SUBJECTS: [(Subject, Option<Subject>); 3] = [
    (Subject::PostgresPerEffect, None),
    (Subject::DurablePostgres, Some(Subject::BareDbos)),
    (Subject::TemporalPostgres, Some(Subject::BareTemporal)),
];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    speed(bench).await?;
    traces(bench).await
}

/// Measures steps per second, and the wall and processor time of a step.
async fn speed(bench: &mut Bench) -> Result<()> {
    let at_once: &[u32] = if bench.quick { &[2] } else { &[1, 32, 256] };
    for at_once in at_once {
        for (subject, alone) in SUBJECTS {
            let job = |subject: Subject| Job {
                warm: bench.repetitions((*at_once).min(32), 0),
                runs: bench.repetitions((*at_once).max(16), 2),
                at_once: *at_once,
                same_processor: false,
                ..bench.client.job(subject, Wire::Sse, Work::USUAL)
            };
            let jobs: Vec<Job> = alone.into_iter().chain([subject]).map(job).collect();
            let measured = repeat(bench, REPETITIONS, &jobs).await?;
            let mut alone: Option<[Figure; 3]> = None;
            for (job, measured) in jobs.iter().zip(&measured) {
                let figures = figures(job, measured);
                for (index, (what, best, unit)) in figures.iter().enumerate() {
                    let key = format!("runtimes.{what}.{at_once}");
                    let figure = bench.report.add_best(&key, job.subject, *best, unit);
                    let alone = alone.as_ref().and_then(|alone| alone.get(index));
                    alone.map(|(_, alone, _)| figure.compared_with(alone.value));
                }
                alone = Some(figures);
            }
        }
    }
    Ok(())
}

/// The number of repetitions.
const REPETITIONS: u32 = 2;

/// The name, value and unit of a figure.
type Figure = (&'static str, Best, &'static str);

/// Returns the best figures of several repetitions.
fn figures(job: &Job, measured: &[Measured]) -> [Figure; 3] {
    let seconds = |wall_ns: u64| wall_ns as f64 / 1e9;
    let each = |measured: &Measured| job.steps() as f64 / seconds(measured.outcome.wall_ns);
    let step = |run_ns: u64| run_ns as f64 / 1e6 / f64::from(job.work.steps());
    [
        ("steps", Best::most(measured.iter().map(each)), "steps/s"),
        ("step", least(measured, |measured| step(measured.outcome.run_ns_median)), "ms"),
        (
            "cpu",
            least(measured, |measured| super::micros(measured.outcome.cpu_ns, job.steps())),
            "µs/step",
        ),
    ]
}

/// Measures the footprint of a step in the engine, in addition to the log, which is the same for
/// all: rows of DBOS or events of Temporal.
async fn traces(bench: &mut Bench) -> Result<()> {
    let steps: &[u32] = if bench.quick { &[4] } else { &[10, 100] };
    for steps in steps {
        for (subject, _) in SUBJECTS {
            let job = bench.client.job(subject, Wire::Sse, Work::tools(*steps));
            let measured = bench.client.measure(&Job { inspect: true, ..job.clone() }).await?;
            let footprint = measured.outcome.footprint.context("the footprint was not measured")?;
            let each = |value: u64| value as f64 / job.steps() as f64;
            let report = &mut bench.report;
            let mut add = |what: &str, value: u64, unit| {
                report.add(&format!("runtimes.{what}.{steps}"), subject, each(value), unit);
            };
            if subject.engine() != Engine::Local {
                add("rows", footprint.engine.rows, "rows");
                add("bytes", footprint.engine.bytes, "B");
            }
            add("wal", footprint.traces.written_bytes, "B");
        }
    }
    Ok(())
}
