//! Tests of the server over TCP: every route, its errors, and what clients and operators rely on.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod ag_ui;
mod answers;
mod auth;
mod bodies;
mod broken_off;
mod broken_store;
mod chat;
mod children;
mod errors;
mod limits;
mod origins;
mod replaced;
mod sessions;
mod shutdown;
mod slow_readers;
mod starts;
mod stops;
mod streams;
mod support;
