//! PostgreSQL's own benchmark with the store's statement, compared with the store and with runs.

use anyhow::Result;

use super::repeat;
use crate::drive::Bench;
use crate::drive::report::Best;
use crate::job::{Job, Store, Subject, Wire, Work};
use crate::probe::{Appends, ProbeKind};

const SUBJECTS: [Subject; 2] = [Subject::PostgresPerEffect, Subject::PostgresPerStep];

/// The number of concurrent runs, as in the measurements of other frameworks.
const AT_ONCE: u32 = 100;

/// The default number of a store's connections.
const DEFAULT_CONNECTIONS: u32 = 16;

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let connections: &[u32] = if bench.quick { &[2] } else { &[1, DEFAULT_CONNECTIONS, 100] };
    let mut baseline = 0.0;
    for connections in connections {
        let (seconds, rounds) = (bench.repetitions(4, 1), bench.repetitions(3, 1));
        let kind = ProbeKind::Pgbench { connections: *connections, seconds, rounds };
        let appends: Appends = bench.client.probe(Store::Postgres, kind).await?;
        let (pgbench, store) = (Best::most(appends.pgbench), Best::most(appends.store));
        if *connections <= DEFAULT_CONNECTIONS {
            baseline = pgbench.value;
        }
        let key = format!("pgbench.appends.{connections}");
        bench.report.add_best(&key, "pgbench", pgbench, "/s");
        let figure =
            bench.report.add_best(&key, "our store", store, "/s").compared_with(pgbench.value);
        figure.at_least_times(0.5);
    }
    let job = |subject: &Subject| Job {
        warm: bench.repetitions(AT_ONCE, 0),
        // Many runs, so that the start and the end, with less concurrency, have little weight.
        runs: bench.repetitions(10 * AT_ONCE, 2),
        at_once: bench.repetitions(AT_ONCE, 2),
        same_processor: false,
        ..bench.client.job(*subject, Wire::Sse, Work::USUAL)
    };
    let jobs: Vec<Job> = SUBJECTS.iter().map(job).collect();
    let measured = repeat(bench, bench.repetitions(3, 1), &jobs).await?;
    for ((subject, job), measured) in SUBJECTS.iter().zip(&jobs).zip(&measured) {
        let seconds = |wall_ns: u64| wall_ns as f64 / 1e9;
        let steps =
            measured.iter().map(|measured| job.steps() as f64 / seconds(measured.outcome.wall_ns));
        let steps = Best::most(steps);
        let figure = bench.report.add_best("pgbench.steps.100", subject, steps, "steps/s");
        // The ratio to the appends that the server accepts from the same number of connections
        // without other load.
        figure.compared_with(baseline);
        if *subject == Subject::PostgresPerStep {
            figure.at_least(3000.0);
        }
    }
    Ok(())
}
