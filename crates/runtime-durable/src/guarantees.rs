//! The guarantees of a durable runtime, depending on its configuration.

use std::time::Duration;

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};

/// Returns one guarantee for each guarantee kind of a runtime.
pub(crate) fn runtime_guarantees(lease: Duration, is_named: bool) -> Vec<Guarantee> {
    vec![
        Guarantee::provided(
            GuaranteeKind::RecordedOnce,
            "the log is authoritative: a step that DBOS executes again finds a recorded outcome there",
        ),
        Guarantee::provided(
            GuaranteeKind::LosesNoFinishedEffect,
            "each reply and each result is appended as soon as it arrives; an interrupted effect runs \
             again with the same idempotency key, an at-most-once tool never",
        ),
        Guarantee::provided(GuaranteeKind::TakenOver, takeover(lease, is_named)),
        Guarantee::provided(
            GuaranteeKind::OneOwner,
            "concurrent starts append at the same log position, and the store accepts exactly one",
        ),
    ]
}

fn takeover(lease: Duration, is_named: bool) -> String {
    let seconds = lease.as_secs_f64();
    let by_lease = format!(
        "once the lease of the crashed process has expired, {seconds} s after its last renewal by the \
         store's clock; requires the same store, an agent of the same name, and its model"
    );
    if is_named {
        format!(
            "immediately by the next process with its executor id, or by any other process {by_lease}"
        )
    } else {
        by_lease
    }
}
