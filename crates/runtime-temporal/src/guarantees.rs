//! The guarantees of a Temporal runtime, depending on its configuration.

use std::time::Duration;

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};
use helix_agents_core::store::{StateStore, StoreScope};

/// Returns one guarantee for each guarantee kind of a runtime.
pub(crate) fn runtime_guarantees(
    lease: Duration,
    own_queue: bool,
    store: Option<&dyn StateStore>,
) -> Vec<Guarantee> {
    vec![
        Guarantee::provided(
            GuaranteeKind::RecordedOnce,
            "each work item reads the log first, and recorded results are never requested again; two \
             workers that execute the same item are fenced by its appends",
        ),
        Guarantee::provided(
            GuaranteeKind::LosesNoFinishedEffect,
            "each reply and each result is appended as soon as it arrives; an interrupted effect runs \
             again with the same idempotency key, an at-most-once tool never",
        ),
        takeover(lease, own_queue, store),
        Guarantee::provided(
            GuaranteeKind::OneOwner,
            "concurrent starts append at the same log position, and the store accepts exactly one; its \
             workflow has a unique id",
        ),
    ]
}

fn takeover(lease: Duration, own_queue: bool, store: Option<&dyn StateStore>) -> Guarantee {
    let seconds = lease.as_secs_f64();
    let why = if own_queue {
        format!(
            "once the lease of the crashed process has expired, {seconds} s after its last renewal by the \
             store's clock; its queue is gone too, so a new run is started"
        )
    } else {
        format!(
            "another worker of the queue continues the same run after {seconds} s without a \
             heartbeat; requires an agent of the same name, and its model"
        )
    };
    let near = store.is_some_and(|store| store.scope() == StoreScope::Machine);
    let where_to =
        if near { "; on this machine only, because others cannot access its store" } else { "" };
    Guarantee::provided(GuaranteeKind::TakenOver, format!("{why}{where_to}"))
}
