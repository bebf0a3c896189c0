//! The durable runtime against the executor contract, on every store it is used with, and what only it
//! does.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod parity;
mod support;
