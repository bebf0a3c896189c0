//! What workers and the tests that kill them have in common.

pub mod stores;
