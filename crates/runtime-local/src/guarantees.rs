//! The guarantees of a local runtime, depending on its configuration.

use std::time::Duration;

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};
use helix_agents_core::session::Durability;
use helix_agents_core::store::{StateStore, StoreScope};

/// Returns one guarantee for each guarantee kind of a runtime.
pub(crate) fn runtime_guarantees(
    durability: Durability,
    lease: Duration,
    store: Option<&dyn StateStore>,
) -> Vec<Guarantee> {
    vec![
        Guarantee::provided(
            GuaranteeKind::RecordedOnce,
            "the next action is derived from the log, and recorded results are never requested again",
        ),
        losses(durability),
        takeover(lease, store),
        Guarantee::provided(
            GuaranteeKind::OneOwner,
            "concurrent starts append at the same log position, and the store accepts exactly one",
        ),
    ]
}

fn losses(durability: Durability) -> Guarantee {
    let kind = GuaranteeKind::LosesNoFinishedEffect;
    match durability {
        Durability::PerEffect => Guarantee::provided(
            kind,
            "PerEffect: each reply and each result is appended as soon as it arrives; an interrupted \
             effect runs again with the same idempotency key, an at-most-once tool never",
        ),
        Durability::PerStep => Guarantee::not_provided(
            kind,
            "PerStep: there is one append per step, so a crash repeats the step, including the model \
             call; an at-most-once tool is recorded before it runs and never repeated",
        ),
    }
}

fn takeover(lease: Duration, store: Option<&dyn StateStore>) -> Guarantee {
    let kind = GuaranteeKind::TakenOver;
    if store.is_some_and(|store| store.scope() == StoreScope::Process) {
        return Guarantee::not_provided(
            kind,
            "no other process can access the sessions of this store",
        );
    }
    Guarantee::provided(
        kind,
        format!(
            "once the lease of the crashed process has expired, {} s after its last renewal by the \
             store's clock; requires the same store, an agent of the same name, and its model",
            lease.as_secs_f64()
        ),
    )
}
