//! Tests of the binary `helix` as users and scripts run it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod agent_file;
mod approvals;
mod chat;
mod children;
mod client_tools;
mod command_line;
mod completions;
mod demo;
mod doctor;
mod fork;
mod full;
mod guide;
mod hostile;
mod init;
mod kills;
mod log;
mod man;
mod planner;
mod postgres;
mod redis;
mod remote;
mod resume;
mod rewind;
mod run;
mod serve;
mod sessions;
mod shell;
mod stop;
mod support;
mod tail;
mod telemetry;
mod terminal;
mod tokens;
mod usage;
