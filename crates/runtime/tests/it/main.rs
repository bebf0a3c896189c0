//! Runs as work items against the executor contract, with an engine that reloads each run from the log for each work
//! item, and the reactions of a runtime to its engine, with an engine that does nothing by itself.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod away;
mod by_hand;
mod children;
mod handles;
mod in_work_items;
mod late_results;
mod parity;
mod refusals;
mod repeats;
mod result_hooks;
mod side_by_side;
mod sweeps;
mod trees;
