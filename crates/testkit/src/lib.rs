//! Shared test utilities of Helix Agents: conformance suites that execute the contracts, and synchronisation
//! without sleeping.
//!
//! A development dependency, not for production use.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

pub mod backend_suite;
pub mod certificates;
pub mod chaos;
pub mod durable_suite;
pub mod faults;
pub mod ids;
pub mod kill;
pub mod normalise;
pub mod proxy;
pub mod retrying;
pub mod runtime_suite;
pub mod scenario;
pub mod servers;
mod similar_ids;
pub mod store_suite;
pub mod stream_suite;
pub mod traced;
pub mod trees;

/// The gates of [`helix_agents_test`].
pub mod gate {
    pub use helix_agents_test::{DEADLINE, Gate, within};
}

/// The model for agents that plan, of [`helix_agents_test`].
pub mod planning {
    pub use helix_agents_test::PlanningScript;
}

/// The scripted models of [`helix_agents_test`].
pub mod scripted {
    pub use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm, SeenRequest};
}
