//! Runs in parts against the executor contract: an engine of tasks that finds each run in the log again
//! for each of its parts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod in_parts;
mod parity;
mod trees;
