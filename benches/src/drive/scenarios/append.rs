//! How long one append takes, beside one bare commit of the same bytes.

use anyhow::Result;

use crate::drive::Bench;
use crate::job::Store;
use crate::probe::{Latencies, Latency, Of};

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
    let of = Of::Append { before: bench.often(1000, 15), appends: bench.often(2000, 5) };
    let mut seen: Vec<(Store, Latencies)> = Vec::new();
    for store in STORES {
        seen.push((store, bench.client.probe(store, of).await?));
    }
    add(bench, &seen, "p50", |it| it.p50_ns);
    add(bench, &seen, "p99", |it| it.p99_ns);
    Ok(())
}

fn add(bench: &mut Bench, seen: &[(Store, Latencies)], part: &str, nanos: fn(Latency) -> u64) {
    let micros = |it: Latency| nanos(it) as f64 / 1e3;
    let report = &mut bench.report;
    for (store, seen) in seen {
        let figure = report.add(&format!("append.{part}"), store, micros(seen.append), "µs");
        let Some(commit) = seen.commit else { continue };
        figure.beside(micros(commit));
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
