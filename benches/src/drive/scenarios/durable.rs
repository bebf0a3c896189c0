//! The footprint of a step in a store, as measured in the store after the run.

use anyhow::{Context as _, Result};

use crate::drive::Bench;
use crate::job::{Job, StepAppends, Subject, Wire, Work};

/// The subjects and the number of appends per step: one for the reply and one for the tool result,
/// or one for both.
const SUBJECTS: [(Subject, f64); 6] = [
    (Subject::SqlitePerEffect, 2.0),
    (Subject::SqlitePerStep, 1.0),
    (Subject::PostgresPerEffect, 2.0),
    (Subject::PostgresPerStep, 1.0),
    (Subject::RedisPerEffect, 2.0),
    (Subject::RedisPerStep, 1.0),
];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let steps: &[u32] = if bench.quick { &[4] } else { &[10, 200, 400] };
    for step in steps {
        for (subject, most_appends) in SUBJECTS {
            let job = bench.client.job(subject, Wire::Sse, Work::tools(*step));
            let measured = bench.client.measure(&Job { inspect: true, ..job.clone() }).await?;
            let footprint = measured.outcome.footprint.context("the store was not inspected")?;
            let last = footprint.steps.get(*step as usize - 2..=*step as usize);
            let last = last.context("the log lacks steps")?;
            let mean = |value: fn(&StepAppends) -> u64| {
                last.iter().map(value).sum::<u64>() as f64 / last.len() as f64
            };
            let (appends, bytes) = (mean(|step| step.appends), mean(|step| step.bytes));
            let mut add = |what: &str, value: f64, unit, most: Option<f64>| {
                let key = format!("durable.{what}.{step}");
                let figure = bench.report.add(&key, subject, value, unit);
                most.map(|most| figure.at_most(most));
            };
            let is_per_step = most_appends == 1.0;
            add("appends", appends, "", Some(most_appends));
            add("bytes", bytes, "B", is_per_step.then_some(1500.0));
            let traces = footprint.traces;
            let each = |value: u64| value as f64 / job.steps() as f64;
            add("rows", each(traces.rows), "rows", None);
            add("stream-rows", each(traces.stream_rows), "rows", None);
            let most = (subject == Subject::PostgresPerStep).then_some(2500.0);
            add("wal", each(traces.written_bytes), "B", most);
            add("kept", each(traces.kept_bytes), "B", None);
        }
    }
    Ok(())
}
