//! The routes of an agent server.

use anyhow::Result;

use crate::drive::Bench;
use crate::job::Store;
use crate::probe::{Compared, Http, HttpLoad, ProbeKind};

const STORES: [Store; 4] = [Store::Memory, Store::Sqlite, Store::Postgres, Store::Redis];

/// The maximum ratio to axum handlers that make the same calls.
const AIM: f64 = 1.3;

pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let load = HttpLoad {
        requests: bench.repetitions(4_000, 10),
        starts: bench.repetitions(400, 4),
        readers: bench.repetitions(100, 2),
        chunks: bench.repetitions(500, 10),
        rounds: bench.repetitions(10, 2),
        idle: bench.repetitions(1_000, 10),
    };
    let mut seen: Vec<(Store, Http)> = Vec::new();
    for store in STORES {
        seen.push((store, bench.client.probe(store, ProbeKind::Http(load)).await?));
    }
    let mut compare = |what: &str, pair: fn(&Http) -> Compared| {
        for (store, http) in &seen {
            let Compared { ours_ns, bare_ns } = pair(http);
            let figure =
                bench.report.add(&format!("http.{what}"), store, ours_ns as f64 / 1e3, "µs");
            figure.compared_with(bare_ns as f64 / 1e3).at_most_times_of("axum", AIM);
        }
    };
    compare("status", |http| http.status);
    compare("first chunk", |http| http.first_chunk);
    compare("fan-out", |http| http.fan_out);
    for (store, http) in &seen {
        let alone = http.first_chunk_in_process_ns as f64 / 1e3;
        bench.report.add("http.first chunk without a server", store, alone, "µs");
        let memory = http.bytes_per_idle_stream / 1e3;
        bench.report.add("http.memory of an idle stream", store, memory, "kB");
    }
    Ok(())
}
