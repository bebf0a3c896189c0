//! Runs whose processes are killed, and their recovery by the next process.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod engines;
mod hostile;
mod kill_matrix;
mod kill_resumers;
mod outages;
mod parity;
mod reported_spans;
mod resume_means_resume;
mod stall_matrix;
mod stall_slow;
mod support;
mod sweep;
mod transfer;
mod trees;
