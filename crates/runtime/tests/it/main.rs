//! Runs in parts against the executor contract: an engine of tasks that finds each run in the log again
//! for each of its parts. And what runtimes make of what engines say: one that does nothing by itself.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod away;
mod by_hand;
mod children;
mod handles;
mod in_parts;
mod late_results;
mod parity;
mod refusals;
mod repeats;
mod side_by_side;
mod sweeps;
mod told;
mod trees;
