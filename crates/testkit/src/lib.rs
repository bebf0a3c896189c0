//! Test servers, killed processes, proxies, certificates and random trees of agents, for the tests of Helix
//! Agents.
//!
//! A development dependency of this repository, not for production use.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

pub mod certificates;
pub mod kill;
pub mod proxy;
pub mod servers;
pub mod trees;
