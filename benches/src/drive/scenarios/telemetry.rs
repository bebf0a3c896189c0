//! The cost of spans in many concurrent runs.

use anyhow::Result;

use super::{least, micros, repeat};
use crate::drive::Bench;
use crate::job::{Job, Subject, Wire, Work};

/// The number of concurrent sessions.
const SESSIONS: u32 = 1000;

/// The cases. Each one with telemetry is compared with the one before it.
const CASES: [(Subject, bool, &str); 4] = [
    (Subject::Memory, false, "memory"),
    (Subject::Memory, true, "memory, with spans"),
    (Subject::SqlitePerEffect, false, "SQLite PerEffect"),
    (Subject::SqlitePerEffect, true, "SQLite PerEffect, with spans"),
];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let job = |(subject, telemetry, _): &(Subject, bool, &str)| {
        let runs = if *subject == Subject::Memory { 6000 } else { 2000 };
        Job {
            warm: bench.repetitions(100, 0),
            runs: bench.repetitions(runs, 20),
            at_once: SESSIONS,
            same_processor: false,
            telemetry: *telemetry,
            ..bench.client.job(*subject, Wire::Sse, Work::USUAL)
        }
    };
    let jobs: Vec<Job> = CASES.iter().map(job).collect();
    let measured = repeat(bench, bench.repetitions(5, 1), &jobs).await?;
    let (mut plain_wall, mut plain_cpu) = (0.0, 0.0);
    for (((_, telemetry, name), job), measured) in CASES.iter().zip(&jobs).zip(&measured) {
        let wall = least(measured, |measured| micros(measured.outcome.wall_ns, job.steps()));
        let cpu = least(measured, |measured| micros(measured.outcome.cpu_ns, job.steps()));
        if !telemetry {
            (plain_wall, plain_cpu) = (wall.value, cpu.value);
        }
        bench.report.add_best("telemetry.wall", name, wall, "µs").compared_with(plain_wall);
        bench.report.add_best("telemetry.cpu", name, cpu, "µs").compared_with(plain_cpu);
    }
    let mut plain = 0.0;
    for ((_, telemetry, name), job) in CASES.iter().zip(&jobs) {
        let job = Job { warm: 0, runs: 30, at_once: 1, ..job.clone() };
        let Some(count) = bench.counter.per_run(&bench.client, &job).await? else { continue };
        let count = count / f64::from(job.work.steps()) / 1e6;
        if !telemetry {
            plain = count;
        }
        bench.report.add("telemetry.instructions", name, count, "M").compared_with(plain);
    }
    Ok(())
}
