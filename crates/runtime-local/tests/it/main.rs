//! Tests of the local runtime, including the executor contract on every store.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod abort_while_starting;
mod child_in_doubt;
mod ended_meanwhile;
mod guarantees;
mod late_batch;
mod late_hooks;
mod late_results;
mod lifecycle;
mod open_attempts;
mod parity;
mod per_step;
mod sessions;
mod slow_stream;
mod stream_after_takeover;
mod sweeper;
mod trees;
mod two_moments;
mod waiting;
