//! Runs that are killed, and what the next process makes of them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kill_matrix;
mod kill_resumers;
mod support;
mod trees;
