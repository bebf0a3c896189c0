//! What the driver asks of a store alone, without a runtime, and what that answers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::job::Store;

/// One measurement, made by a process of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Probe {
    pub(crate) store: Store,
    pub(crate) of: Of,
    /// An empty folder for a database.
    pub(crate) folder: PathBuf,
}

/// What is measured.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Of {
    /// How long one append takes to a log of so many and more, one after the other, each in turn with what it is
    /// compared with. Answered by [`Latencies`].
    Append { before: u32, appends: u32 },
    /// What readers see that are there while others write. Answered by [`Readers`].
    Readers(Live),
    /// How many appends a second PostgreSQL takes from so many connections: the same statement, from pgbench and from
    /// the store by turns. Answered by [`Appends`].
    Pgbench { connections: u32, seconds: u32, rounds: u32 },
}

/// Readers of streams, and what is written meanwhile by a store of another process, as it were.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Live {
    pub(crate) readers: u32,
    /// Streams that the readers share evenly.
    pub(crate) streams: u32,
    /// Batches that are written to each stream at leisure, so that none waits for another.
    pub(crate) paced: u32,
    /// From one of those to the next, on whatever stream.
    pub(crate) pause_us: u64,
    /// Batches that are written to each stream as fast as it goes.
    pub(crate) fast: u32,
    /// Chunks in a batch.
    pub(crate) chunks: u32,
}

/// How long things took, by what was done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Latencies {
    /// By the store.
    pub(crate) append: Latency,
    /// The same to a log of about ten appends.
    pub(crate) early: Latency,
    /// One bare commit of the same bytes on the same server; none of a store that commits nothing.
    pub(crate) commit: Option<Latency>,
    /// The store's own statement, without the store.
    pub(crate) statement: Option<Latency>,
}

/// The middle, and what one in a hundred exceeds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
}

/// What readers saw.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Readers {
    /// From before a batch is written until a reader has a chunk of it.
    pub(crate) latency: Latency,
    /// Chunks that readers had in a second, all of them together, when batches came as fast as they went.
    pub(crate) chunks_per_second: f64,
    /// What a reader that waits keeps in memory.
    pub(crate) bytes_per_reader: f64,
}

/// Appends a second, round by round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Appends {
    pub(crate) pgbench: Vec<f64>,
    pub(crate) store: Vec<f64>,
}

impl Latency {
    /// Of what was seen, in any order.
    pub(crate) fn of(mut seen: Vec<u64>) -> Self {
        seen.sort_unstable();
        let at = |part: usize| seen.get(seen.len() * part / 100).copied().unwrap_or(0);
        Self { p50_ns: at(50), p99_ns: at(99) }
    }
}
