//! Tests of the Temporal runtime on a real server.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod by_hand;
mod crashes;
mod deployment;
mod door;
mod histories;
mod parity;
mod processes;
mod records;
mod refusals;
mod tls;
