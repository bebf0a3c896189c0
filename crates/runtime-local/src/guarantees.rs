//! What may be relied on, by how the runtime is put together.

use std::time::Duration;

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};
use helix_agents_core::session::Durability;
use helix_agents_core::store::{StateStore, StoreScope};

/// One for each promise of a runtime.
pub(crate) fn of(
    durability: Durability,
    lease: Duration,
    store: Option<&dyn StateStore>,
) -> Vec<Guarantee> {
    vec![
        Guarantee::given(
            GuaranteeKind::RecordedOnce,
            "what comes next is read off the log, and what it holds is not asked for again",
        ),
        losses(durability),
        takeover(lease, store),
        Guarantee::given(
            GuaranteeKind::OneOwner,
            "each begins with an append at the same place in the log, and the store takes one",
        ),
    ]
}

fn losses(durability: Durability) -> Guarantee {
    let promise = GuaranteeKind::LosesNoFinishedEffect;
    match durability {
        Durability::PerEffect => Guarantee::given(
            promise,
            "PerEffect: a reply is appended when it is there, then results as they come; what was \
             under way runs again under the same idempotency key, an at-most-once tool never",
        ),
        Durability::PerStep => Guarantee::not_given(
            promise,
            "PerStep: there is one append per step, so a crash repeats the step, the model call \
             included; an at-most-once tool is on record before it runs, and never repeated",
        ),
    }
}

fn takeover(lease: Duration, store: Option<&dyn StateStore>) -> Guarantee {
    let promise = GuaranteeKind::TakenOver;
    if store.is_some_and(|store| store.reach() == StoreScope::Process) {
        return Guarantee::not_given(promise, "no other process sees the sessions of this store");
    }
    Guarantee::given(
        promise,
        format!(
            "once the lease of the dead one has run out, {} s after its last sign of life by the \
             store's clock; it takes the same store, an agent of the same name, and its model",
            lease.as_secs_f64()
        ),
    )
}
