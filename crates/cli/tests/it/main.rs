//! The binary `helix`, from outside: as people and scripts use it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod agent_file;
mod chat;
mod command_line;
mod demo;
mod guide;
mod kills;
mod resume;
mod run;
mod sessions;
mod support;
mod tail;
mod terminal;
