//! PostgreSQL's own benchmark with the store's own statement, and what runs make of it.

use anyhow::Result;

use super::repeat;
use crate::drive::Bench;
use crate::drive::report::Best;
use crate::job::{Job, Store, Subject, Wire, Work};
use crate::probe::{Appends, Of};

const SUBJECTS: [Subject; 2] = [Subject::PostgresPerEffect, Subject::PostgresPerStep];

/// How many runs are under way, as with the other frameworks.
const AT_ONCE: u32 = 100;

/// Connections of a store that is told of no other number.
const USUAL: u32 = 16;

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let connections: &[u32] = if bench.quick { &[2] } else { &[1, USUAL, 100] };
    let mut usual = 0.0;
    for connections in connections {
        let (seconds, rounds) = (bench.often(4, 1), bench.often(3, 1));
        let of = Of::Pgbench { connections: *connections, seconds, rounds };
        let appends: Appends = bench.client.probe(Store::Postgres, of).await?;
        let (pgbench, store) = (Best::most(appends.pgbench), Best::most(appends.store));
        if *connections <= USUAL {
            usual = pgbench.value;
        }
        let key = format!("pgbench.appends.{connections}");
        bench.report.add_best(&key, "pgbench", pgbench, "/s");
        let figure = bench.report.add_best(&key, "our store", store, "/s").beside(pgbench.value);
        figure.at_least_times(0.5);
    }
    let job = |subject: &Subject| Job {
        warm: bench.often(AT_ONCE, 0),
        // So many that their first and last moments, in which fewer are at work, weigh little.
        runs: bench.often(10 * AT_ONCE, 2),
        at_once: bench.often(AT_ONCE, 2),
        beside: false,
        ..bench.client.job(*subject, Wire::Sse, Work::USUAL)
    };
    let jobs: Vec<Job> = SUBJECTS.iter().map(job).collect();
    let measured = repeat(bench, bench.often(3, 1), &jobs).await?;
    for ((subject, job), measured) in SUBJECTS.iter().zip(&jobs).zip(&measured) {
        let seconds = |wall_ns: u64| wall_ns as f64 / 1e9;
        let steps = measured.iter().map(|it| job.steps() as f64 / seconds(it.outcome.wall_ns));
        let steps = Best::most(steps);
        let figure = bench.report.add_best("pgbench.steps.100", subject, steps, "steps/s");
        // As a part of what the server takes from as many connections while it does nothing else.
        figure.beside(usual);
        if *subject == Subject::PostgresPerStep {
            figure.at_least(3000.0);
        }
    }
    Ok(())
}
