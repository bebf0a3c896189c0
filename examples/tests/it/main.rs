//! Runs each example as a user would: as a process, which some tests kill and start again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod approval;
mod clerk;
mod client_tools;
mod critic;
#[cfg(feature = "servers")]
mod durable;
mod fork;
mod jwt;
mod order_desk;
mod own_loop;
mod own_store;
mod plan_execute;
mod program;
mod resume;
#[cfg(feature = "servers")]
mod runtimes;
#[cfg(feature = "servers")]
mod stores;
mod streaming;
#[cfg(feature = "servers")]
mod temporal;
mod weather;
