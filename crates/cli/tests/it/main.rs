//! The binary `helix`, from outside: as people and scripts use it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod command_line;
mod demo;
mod kills;
mod resume;
mod sessions;
mod support;
mod tail;
