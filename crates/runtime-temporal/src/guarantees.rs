//! What may be relied on, by how the runtime is put together.

use std::time::Duration;

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};
use helix_agents_core::store::{StateStore, StoreScope};

/// One for each promise of a runtime.
pub(crate) fn of(
    lease: Duration,
    own_queue: bool,
    store: Option<&dyn StateStore>,
) -> Vec<Guarantee> {
    vec![
        Guarantee::given(
            GuaranteeKind::RecordedOnce,
            "each part looks in the log first, and what it holds is not asked for again; two that do the \
             same part are fenced by its appends",
        ),
        Guarantee::given(
            GuaranteeKind::LosesNoFinishedEffect,
            "a reply is appended when it is there, then results as they come; what was under way runs \
             again under the same idempotency key, an at-most-once tool never",
        ),
        takeover(lease, own_queue, store),
        Guarantee::given(
            GuaranteeKind::OneOwner,
            "each begins with an append at the same place in the log, and the store takes one; its \
             workflow has an id of its own",
        ),
    ]
}

fn takeover(lease: Duration, own_queue: bool, store: Option<&dyn StateStore>) -> Guarantee {
    let seconds = lease.as_secs_f64();
    let why = if own_queue {
        format!(
            "once the lease of the dead one has run out, {seconds} s after its last sign of life by the \
             store's clock; its queue died with it, so a new run is begun"
        )
    } else {
        format!(
            "another worker of the queue goes on with the same run once {seconds} s have passed without \
             a heartbeat; it has an agent of the same name, and its model"
        )
    };
    let near = store.is_some_and(|store| store.reach() == StoreScope::Machine);
    let where_to = if near { "; on this machine only, for no other sees its store" } else { "" };
    Guarantee::given(GuaranteeKind::TakenOver, format!("{why}{where_to}"))
}
