//! Planning loops on the local runtime, in memory and on SQLite.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod answers;
mod executor;
mod instant;
mod once;
mod options;
mod planner;
mod restarts;
mod rounds;
mod stops;
mod stream;
mod support;
mod unusable;
