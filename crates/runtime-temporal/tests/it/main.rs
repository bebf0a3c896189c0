//! Runs on Temporal, on a real server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod parity;
mod registering;
