//! What workers and the tests that kill them have in common.

pub mod runtimes;
pub mod scenarios;
pub mod slow_streams;
pub mod stores;
pub mod telling;
pub mod trees;
