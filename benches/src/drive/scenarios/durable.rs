//! What a step leaves in the database, read from the file after the run.

use anyhow::{Context as _, Result};

use crate::drive::Bench;
use crate::job::{Job, StepRows, Subject, Wire, Work};

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let steps: &[u32] = if bench.quick { &[4] } else { &[10, 200, 400] };
    for subject in [Subject::SqlitePerEffect, Subject::SqlitePerStep] {
        // The reply, and the tool's result.
        let most_rows = if subject == Subject::SqlitePerStep { 1.0 } else { 2.0 };
        for step in steps {
            let job = bench.client.job(subject, Wire::Sse, Work::tools(*step));
            let measured = bench.client.measure(&Job { inspect: true, ..job }).await?;
            let left = measured.outcome.left.context("the database was not looked at")?;
            let step = *step as usize;
            let last = left.steps.get(step - 2..=step).context("the log lacks steps")?;
            let mean = |value: fn(&StepRows) -> u64| {
                last.iter().map(value).sum::<u64>() as f64 / last.len() as f64
            };
            let all = left.steps.len() as f64 - 1.0;
            let (rows, bytes) = (mean(|it| it.rows), mean(|it| it.bytes));
            let report = &mut bench.report;
            report.add(&format!("durable.rows.{step}"), subject, rows, "rows").at_most(most_rows);
            let figure = report.add(&format!("durable.bytes.{step}"), subject, bytes, "B");
            if subject == Subject::SqlitePerStep {
                figure.at_most(1500.0);
            }
            let mut each = |key: &str, value: u64, unit| {
                report.add(&format!("durable.{key}.{step}"), subject, value as f64 / all, unit);
            };
            each("chunk-rows", left.chunk_rows, "rows");
            each("chunk-bytes", left.chunk_bytes, "B");
            each("wal", left.wal_bytes, "B");
            each("file", left.file_bytes, "B");
        }
    }
    Ok(())
}
