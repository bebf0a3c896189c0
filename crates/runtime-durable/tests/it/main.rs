//! Tests of the durable runtime, including the executor contract on every shared store.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod building;
mod lifecycle;
mod outage;
mod parity;
mod recovery;
mod support;
