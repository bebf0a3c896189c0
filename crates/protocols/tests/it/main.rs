//! Integration tests of `helix-agents-protocols`: random trees of agents, watched by clients of both protocols.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod ag_ui;
mod ai_sdk;
mod frames;
mod stories;
mod talkative;
