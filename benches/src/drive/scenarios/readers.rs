//! A thousand readers of streams that are being written.

use anyhow::Result;

use crate::drive::Bench;
use crate::job::Store;
use crate::probe::{ProbeKind, ReaderLoad, Readers};

const STORES: [Store; 4] = [Store::Memory, Store::Sqlite, Store::Postgres, Store::Redis];

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let readers = bench.repetitions(1000, 4);
    let cases = [
        // 400 batches a second.
        (
            "one stream each",
            ReaderLoad { readers, streams: readers, paced: 2, pause_us: 2500, fast: 5, chunks: 10 },
        ),
        // Ten batches a second.
        (
            "one stream for all",
            ReaderLoad { readers, streams: 1, paced: 20, pause_us: 100_000, fast: 50, chunks: 10 },
        ),
    ];
    for (name, load) in cases {
        let mut seen: Vec<(Store, Readers)> = Vec::new();
        for store in STORES {
            seen.push((store, bench.client.probe(store, ProbeKind::Readers(load)).await?));
        }
        let mut add = |what: &str, value: fn(&Readers) -> f64, unit| {
            for (store, seen) in &seen {
                bench.report.add(&format!("readers.{name}: {what}"), store, value(seen), unit);
            }
        };
        add("p50", |readers| readers.latency.p50_ns as f64 / 1e6, "ms");
        add("p99", |readers| readers.latency.p99_ns as f64 / 1e6, "ms");
        add("chunks", |readers| readers.chunks_per_second, "/s");
        add("memory", |readers| readers.bytes_per_reader / 1e3, "kB");
    }
    Ok(())
}
