//! Integration tests of `helix-agents-core`: sessions in a store, and recorded logs.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod align;
mod begin;
mod folds;
mod journal;
mod overviews;
mod recorded;
mod request;
mod retry_window;
mod support;
mod transfer;
mod usage;
