//! Tests of the conformance suites: a correct store passes them, and they detect each breakage.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken;
mod mutants;

mod conformance {
    helix_agents_conformance::store_suite!(crate::broken::sound);
}

mod stream {
    helix_agents_conformance::stream_suite!(crate::broken::sound);
}

mod backend {
    helix_agents_conformance::backend_suite!(crate::broken::sound);
}
