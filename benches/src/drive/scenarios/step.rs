//! The cost of one step in sequential runs.

use anyhow::Result;

use super::{least, micros, repeat};
use crate::drive::Bench;
use crate::job::{Ending, Job, Subject, Wire, Work};

const FINISH: Work = Work::Tools { calls: 10, delay_ms: 0, ending: Ending::Finish };

/// The cases. Each is compared with the bare loop of the same wire and ending.
const CASES: [(Subject, Wire, Work, &str); 10] = [
    (Subject::Bare, Wire::Json, Work::USUAL, "bare reqwest, not streamed"),
    (Subject::Memory, Wire::Json, Work::USUAL, "memory, not streamed"),
    (Subject::Bare, Wire::Sse, FINISH, "bare reqwest, __finish__"),
    (Subject::Memory, Wire::Sse, FINISH, "memory, __finish__"),
    (Subject::Bare, Wire::Sse, Work::USUAL, "bare reqwest"),
    (Subject::Memory, Wire::Sse, Work::USUAL, "memory"),
    (Subject::SqliteNormalPerEffect, Wire::Sse, Work::USUAL, "SQLite normal PerEffect"),
    (Subject::SqliteNormalPerStep, Wire::Sse, Work::USUAL, "SQLite normal PerStep"),
    (Subject::SqlitePerEffect, Wire::Sse, Work::USUAL, "SQLite PerEffect"),
    (Subject::SqlitePerStep, Wire::Sse, Work::USUAL, "SQLite PerStep"),
];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let jobs: Vec<Job> = CASES
        .iter()
        .map(|(subject, wire, work, _)| {
            let runs = match subject {
                Subject::Bare | Subject::Memory => bench.repetitions(500, 2),
                Subject::SqliteNormalPerEffect | Subject::SqliteNormalPerStep => {
                    bench.repetitions(200, 1)
                }
                // Each append of these subjects waits for a disk or a server.
                _ => bench.repetitions(60, 1),
            };
            Job { warm: bench.repetitions(20, 0), runs, ..bench.client.job(*subject, *wire, *work) }
        })
        .collect();
    let measured = repeat(bench, bench.repetitions(5, 1), &jobs).await?;
    let mut cpu_of_memory = 0.0;
    let (mut bare_wall, mut bare_cpu) = (0.0, 0.0);
    let mut added = Vec::new();
    for (((subject, .., name), job), measured) in CASES.iter().zip(&jobs).zip(&measured) {
        let steps = u64::from(job.work.steps());
        let wall = least(measured, |measured| micros(measured.outcome.run_ns_median, steps));
        let cpu = least(measured, |measured| micros(measured.outcome.cpu_ns, job.steps()));
        if *subject == Subject::Bare {
            (bare_wall, bare_cpu) = (wall.value, cpu.value);
        }
        bench.report.add_best("step.wall", name, wall, "µs").compared_with(bare_wall);
        let figure = bench.report.add_best("step.cpu", name, cpu, "µs").compared_with(bare_cpu);
        match subject {
            Subject::Bare => {}
            Subject::Memory => {
                figure.at_most_times(1.5);
                cpu_of_memory = cpu.value;
            }
            _ => added.push((*name, cpu.value)),
        }
    }
    instructions(bench, &jobs).await?;
    for (name, cpu) in added {
        bench.report.add("durable.cpu", name, cpu - cpu_of_memory, "µs").at_most(60.0);
    }
    Ok(())
}

async fn instructions(bench: &mut Bench, jobs: &[Job]) -> Result<()> {
    let mut bare = 0.0;
    for ((subject, .., name), job) in CASES.iter().zip(jobs) {
        let job = Job { warm: 0, runs: 30, ..job.clone() };
        let Some(count) = bench.counter.per_run(&bench.client, &job).await? else { continue };
        let count = count / f64::from(job.work.steps()) / 1e6;
        if *subject == Subject::Bare {
            bare = count;
        }
        let figure = bench.report.add("step.instructions", name, count, "M").compared_with(bare);
        if *subject == Subject::Memory {
            figure.at_most_times(1.5);
        }
    }
    Ok(())
}
