//! Many concurrent runs.

use anyhow::Result;

use super::{least, micros, repeat};
use crate::drive::Bench;
use crate::drive::report::Best;
use crate::job::{Job, Subject, Wire, Work};

/// The subject, wire and number of threads. With one thread, the server has a processor of its own.
/// With two, one of them shares the server's processor, as in a program that uses the whole
/// machine.
const CASES: [(Subject, Wire, u32, &str); 10] = [
    (Subject::Bare, Wire::Json, 1, "bare reqwest, not streamed"),
    (Subject::Memory, Wire::Json, 1, "memory, not streamed"),
    (Subject::Bare, Wire::Json, 2, "bare reqwest, not streamed, 2 threads"),
    (Subject::Memory, Wire::Json, 2, "memory, not streamed, 2 threads"),
    (Subject::Bare, Wire::Sse, 1, "bare reqwest"),
    (Subject::Memory, Wire::Sse, 1, "memory"),
    (Subject::SqlitePerEffect, Wire::Sse, 1, "SQLite PerEffect"),
    (Subject::SqlitePerStep, Wire::Sse, 1, "SQLite PerStep"),
    (Subject::Bare, Wire::Sse, 2, "bare reqwest, 2 threads"),
    (Subject::Memory, Wire::Sse, 2, "memory, 2 threads"),
];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let job = |(subject, wire, threads, _): &(Subject, Wire, u32, &str)| {
        let durable = !matches!(subject, Subject::Bare | Subject::Memory);
        let runs = bench.repetitions(if durable { 300 } else { 3000 }, 20);
        let job = bench.client.job(*subject, *wire, Work::USUAL);
        Job {
            warm: bench.repetitions(100, 0),
            runs,
            at_once: 100,
            threads: *threads,
            same_processor: false,
            ..job
        }
    };
    let jobs: Vec<Job> = CASES.iter().map(job).collect();
    let measured = repeat(bench, bench.repetitions(3, 1), &jobs).await?;
    let (mut bare_runs, mut bare_cpu) = (0.0, 0.0);
    for (((subject, _, _, name), job), measured) in CASES.iter().zip(&jobs).zip(&measured) {
        let per_second = |wall_ns: u64| f64::from(job.runs) / (wall_ns as f64 / 1e9);
        let runs = Best::most(measured.iter().map(|measured| per_second(measured.outcome.wall_ns)));
        let cpu = least(measured, |measured| micros(measured.outcome.cpu_ns, job.steps()));
        if *subject == Subject::Bare {
            (bare_runs, bare_cpu) = (runs.value, cpu.value);
        }
        let figure =
            bench.report.add_best("load.runs", name, runs, "runs/s").compared_with(bare_runs);
        if *subject == Subject::Memory {
            figure.at_least(3000.0);
        }
        bench.report.add_best("load.cpu", name, cpu, "µs").compared_with(bare_cpu);
    }
    Ok(())
}
