//! The latency of one append, compared with a bare commit of the same bytes.

use anyhow::Result;

use crate::drive::Bench;
use crate::job::Store;
use crate::probe::{Latencies, Latency, ProbeKind};

const STORES: [Store; 7] = [
    Store::Memory,
    Store::Sqlite,
    Store::SqliteNormal,
    Store::Postgres,
    Store::PostgresAsync,
    Store::Redis,
    Store::RedisEverysec,
];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let kind = ProbeKind::Append {
        before: bench.repetitions(1000, 15),
        appends: bench.repetitions(2000, 5),
    };
    let mut seen: Vec<(Store, Latencies)> = Vec::new();
    for store in STORES {
        seen.push((store, bench.client.probe(store, kind).await?));
    }
    add(bench, &seen, "p50", |latency| latency.p50_ns);
    add(bench, &seen, "p99", |latency| latency.p99_ns);
    Ok(())
}

fn add(bench: &mut Bench, seen: &[(Store, Latencies)], part: &str, nanos: fn(Latency) -> u64) {
    let micros = |latency: Latency| nanos(latency) as f64 / 1e3;
    let report = &mut bench.report;
    for (store, seen) in seen {
        let figure = report.add(&format!("append.{part}"), store, micros(seen.append), "µs");
        let Some(commit) = seen.commit else { continue };
        figure.compared_with(micros(commit));
        if part == "p50" && matches!(store, Store::Sqlite | Store::Postgres | Store::Redis) {
            figure.at_most_times(1.5);
        }
    }
    for (store, seen) in seen {
        let Some(commit) = seen.commit else { continue };
        report.add(&format!("append.one commit, {part}"), store, micros(commit), "µs");
    }
    for (store, seen) in seen {
        let Some(statement) = seen.statement else { continue };
        report.add(&format!("append.the bare statement, {part}"), store, micros(statement), "µs");
    }
    for (store, seen) in seen {
        let times = micros(seen.append) / micros(seen.early);
        let figure = report.add(&format!("append.1,000th over 10th, {part}"), store, times, "×");
        if part == "p50" {
            figure.at_most(1.2);
        }
    }
}
