//! The durable runtime against the executor contract, on every store it is used with, and what only it
//! does.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod building;
mod lifecycle;
mod outage;
mod parity;
mod recovery;
mod support;
