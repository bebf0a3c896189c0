//! The code that workers share with the tests that kill them.

pub mod runtimes;
pub mod scenarios;
pub mod slow_streams;
pub mod span_file;
pub mod stores;
pub mod trees;
pub mod verbs;
