//! What a run that waits on a slow model keeps in memory.

use anyhow::Result;

use super::{least, repeat};
use crate::drive::Bench;
use crate::job::{Ending, Job, Subject, Wire, Work};

const SUBJECTS: [Subject; 3] = [Subject::Bare, Subject::Memory, Subject::SqlitePerEffect];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let at_once = bench.often(1000, 20);
    let delay_ms = u64::from(bench.often(1000, 100));
    let work = Work::Tools { calls: 3, delay_ms, ending: Ending::Native };
    let mut bare = 0.0;
    for subject in SUBJECTS {
        let one = Job { beside: false, ..bench.client.job(subject, Wire::Sse, work) };
        let many = Job { runs: at_once, at_once, ..one.clone() };
        let measured = repeat(bench, bench.often(2, 1), &[one, many]).await?;
        let [one, many] = measured.as_slice() else { continue };
        let peak = |measured| least(measured, |it| it.outcome.peak_bytes as f64).value;
        let each = (peak(many) - peak(one)) / f64::from(at_once - 1) / 1e3;
        if subject == Subject::Bare {
            bare = each;
        }
        let figure = bench.report.add("memory.waiting", subject, each, "kB").beside(bare);
        if subject == Subject::Memory {
            figure.at_most(40.0);
        }
    }
    Ok(())
}
