//! The cost of one chunk of a streamed reply.

use anyhow::Result;

use super::{least, micros, repeat};
use crate::drive::Bench;
use crate::job::{Job, Subject, Wire, Work};

/// The subjects with one thread alternate. SQLite has several threads, so it is measured after
/// them.
const ROUNDS: [&[Subject]; 2] = [&[Subject::Bare, Subject::Memory], &[Subject::SqlitePerEffect]];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let chunks = bench.repetitions(10_000, 100);
    for (key, per_write) in [("stream.cpu", 1), ("stream.cpu, 100 per write", 100)] {
        let work = Work::Text { chunks, per_write };
        let runs = bench.repetitions(20, 1);
        let mut bare = 0.0;
        for subjects in ROUNDS {
            let job = |subject: &Subject| {
                let job = bench.client.job(*subject, Wire::Sse, work);
                Job { warm: bench.repetitions(2, 0), runs, ..job }
            };
            let jobs: Vec<Job> = subjects.iter().map(job).collect();
            let measured = repeat(bench, bench.repetitions(5, 1), &jobs).await?;
            let chunks = u64::from(runs) * u64::from(chunks);
            for (subject, measured) in subjects.iter().zip(&measured) {
                let cpu = least(measured, |measured| micros(measured.outcome.cpu_ns, chunks));
                if *subject == Subject::Bare {
                    bare = cpu.value;
                }
                let figure = bench.report.add_best(key, subject, cpu, "µs").compared_with(bare);
                if *subject == Subject::Memory {
                    figure.at_most(2.1);
                }
            }
        }
    }
    Ok(())
}
