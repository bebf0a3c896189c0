//! The probes of a store without a runtime, and their results.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::job::Store;

/// One measurement, which a separate process makes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Probe {
    pub(crate) store: Store,
    pub(crate) kind: ProbeKind,
    /// An empty folder for a database.
    pub(crate) folder: PathBuf,
}

/// The kind of a measurement.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProbeKind {
    /// The latency of appends to a log that already has `before` appends. Each append alternates
    /// with its baselines. The result is [`Latencies`].
    Append { before: u32, appends: u32 },
    /// The latency, throughput and memory of stream readers. The result is [`Readers`].
    Readers(ReaderLoad),
    /// The appends per second that PostgreSQL accepts from this many connections: the same
    /// statement from pgbench and from the store, alternating. The result is [`Appends`].
    Pgbench { connections: u32, seconds: u32, rounds: u32 },
    /// The routes of an agent server and of axum handlers that make the same calls, alternating. The
    /// result is [`Http`].
    Http(HttpLoad),
}

/// The requests to an agent server.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct HttpLoad {
    /// The number of requests for a status.
    pub(crate) requests: u32,
    /// The number of runs to start.
    pub(crate) starts: u32,
    /// The number of clients that read one run.
    pub(crate) readers: u32,
    /// The number of chunks of that run.
    pub(crate) chunks: u32,
    /// The number of such runs.
    pub(crate) rounds: u32,
    /// The number of streams that wait.
    pub(crate) idle: u32,
}

/// The cost of the routes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Http {
    /// One request for the status of a session.
    pub(crate) status: Compared,
    /// The time from the request that starts a run until the first chunk of its text arrives.
    pub(crate) first_chunk: Compared,
    /// The same without a server.
    pub(crate) first_chunk_in_process_ns: u64,
    /// The time in which many clients read one run.
    pub(crate) fan_out: Compared,
    /// The memory of a stream that waits, with both ends of its connection.
    pub(crate) bytes_per_idle_stream: f64,
}

/// The median times of an agent server and of bare handlers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Compared {
    pub(crate) ours_ns: u64,
    pub(crate) bare_ns: u64,
}

/// The readers of streams, and the batches that a separate writer writes meanwhile.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ReaderLoad {
    pub(crate) readers: u32,
    /// The number of streams that the readers share evenly.
    pub(crate) streams: u32,
    /// The number of batches that are written to each stream at a fixed interval, so that none
    /// waits for another.
    pub(crate) paced: u32,
    /// The interval between two of these batches, over all streams.
    pub(crate) pause_us: u64,
    /// The number of batches that are written to each stream as fast as possible.
    pub(crate) fast: u32,
    /// The number of chunks in a batch.
    pub(crate) chunks: u32,
}

/// The latencies of an append and its baselines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Latencies {
    /// An append by the store.
    pub(crate) append: Latency,
    /// An append by the store to a log with about ten appends.
    pub(crate) early: Latency,
    /// A bare commit of the same bytes on the same server; `None` for a store that does not commit
    /// anything.
    pub(crate) commit: Option<Latency>,
    /// The store's own statement without the store.
    pub(crate) statement: Option<Latency>,
}

/// The median and the 99th percentile.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
}

/// The measurements of stream readers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Readers {
    /// The time from just before the write of a batch until a reader has one of its chunks.
    pub(crate) latency: Latency,
    /// The chunks per second that all readers received in the fast phase.
    pub(crate) chunks_per_second: f64,
    /// The memory of a waiting reader.
    pub(crate) bytes_per_reader: f64,
}

/// Appends per second, by round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Appends {
    pub(crate) pgbench: Vec<f64>,
    pub(crate) store: Vec<f64>,
}

impl Latency {
    /// Computes the percentiles of values in any order.
    pub(crate) fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let at = |part: usize| values.get(values.len() * part / 100).copied().unwrap_or(0);
        Self { p50_ns: at(50), p99_ns: at(99) }
    }
}
