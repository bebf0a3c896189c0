//! Many runs at once.

use anyhow::Result;

use super::{least, micros, repeat};
use crate::drive::Bench;
use crate::drive::report::Best;
use crate::job::{Job, Subject, Wire, Work};

const CASES: [(Subject, Wire, &str); 6] = [
    (Subject::Bare, Wire::Json, "bare reqwest, not streamed"),
    (Subject::Memory, Wire::Json, "memory, not streamed"),
    (Subject::Bare, Wire::Sse, "bare reqwest"),
    (Subject::Memory, Wire::Sse, "memory"),
    (Subject::SqlitePerEffect, Wire::Sse, "SQLite PerEffect"),
    (Subject::SqlitePerStep, Wire::Sse, "SQLite PerStep"),
];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let job = |(subject, wire, _): &(Subject, Wire, &str)| {
        let durable = !matches!(subject, Subject::Bare | Subject::Memory);
        let runs = bench.often(if durable { 300 } else { 3000 }, 20);
        let job = bench.client.job(*subject, *wire, Work::USUAL);
        Job { warm: bench.often(100, 0), runs, at_once: 100, beside: false, ..job }
    };
    let jobs: Vec<Job> = CASES.iter().map(job).collect();
    let measured = repeat(bench, bench.often(3, 1), &jobs).await?;
    let (mut bare_runs, mut bare_cpu) = (0.0, 0.0);
    for (((subject, _, name), job), measured) in CASES.iter().zip(&jobs).zip(&measured) {
        let per_second = |wall_ns: u64| f64::from(job.runs) / (wall_ns as f64 / 1e9);
        let runs = Best::most(measured.iter().map(|it| per_second(it.outcome.wall_ns)));
        let cpu = least(measured, |it| micros(it.outcome.cpu_ns, job.steps()));
        if *subject == Subject::Bare {
            (bare_runs, bare_cpu) = (runs.value, cpu.value);
        }
        let figure = bench.report.add_best("load.runs", name, runs, "runs/s").beside(bare_runs);
        if *subject == Subject::Memory {
            figure.at_least(3000.0);
        }
        bench.report.add_best("load.cpu", name, cpu, "µs").beside(bare_cpu);
    }
    Ok(())
}
