//! What may be relied on, by how the runtime is put together.

use std::time::Duration;

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};

/// One for each promise of a runtime.
pub(crate) fn of(lease: Duration, is_named: bool) -> Vec<Guarantee> {
    vec![
        Guarantee::given(
            GuaranteeKind::RecordedOnce,
            "the log decides: a step that DBOS carries out again finds its effect there",
        ),
        Guarantee::given(
            GuaranteeKind::LosesNoFinishedEffect,
            "a reply is appended when it is there, then results as they come; what was under way runs \
             again under the same idempotency key, an at-most-once tool never",
        ),
        Guarantee::given(GuaranteeKind::TakenOver, takeover(lease, is_named)),
        Guarantee::given(
            GuaranteeKind::OneOwner,
            "each begins with an append at the same place in the log, and the store takes one",
        ),
    ]
}

fn takeover(lease: Duration, is_named: bool) -> String {
    let seconds = lease.as_secs_f64();
    let by_lease = format!(
        "once the lease of the dead one has run out, {seconds} s after its last sign of life by the \
         store's clock; it takes the same store, an agent of the same name, and its model"
    );
    if is_named {
        format!("at once by the process that has its executor id next, or by any other {by_lease}")
    } else {
        by_lease
    }
}
