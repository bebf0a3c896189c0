//! The time from the start of a process to the end of its first run.

use anyhow::Result;

use super::{least, repeat};
use crate::drive::Bench;
use crate::job::{Job, Subject, Wire, Work};

const SUBJECTS: [Subject; 3] = [Subject::Bare, Subject::Memory, Subject::SqlitePerEffect];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let job = |subject: &Subject| {
        let job = bench.client.job(*subject, Wire::Sse, Work::USUAL);
        Job { same_processor: false, ..job }
    };
    let jobs: Vec<Job> = SUBJECTS.iter().map(job).collect();
    let measured = repeat(bench, bench.repetitions(20, 1), &jobs).await?;
    let (mut bare_wall, mut bare_cpu) = (0.0, 0.0);
    for (subject, measured) in SUBJECTS.iter().zip(&measured) {
        let wall = least(measured, |measured| measured.lived.as_secs_f64() * 1e3);
        let cpu = least(measured, |measured| measured.outcome.whole_cpu_ns as f64 / 1e6);
        if *subject == Subject::Bare {
            (bare_wall, bare_cpu) = (wall.value, cpu.value);
        }
        let figure =
            bench.report.add_best("cold.wall", subject, wall, "ms").compared_with(bare_wall);
        if *subject == Subject::Memory {
            figure.at_most(5.0);
        }
        bench.report.add_best("cold.cpu", subject, cpu, "ms").compared_with(bare_cpu);
    }
    Ok(())
}
