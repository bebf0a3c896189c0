//! What may be relied on, by how the server is set.

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};

/// Settings of the server on which promises rest, as they were when the store was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) fsync: bool,
    pub(crate) synchronous_commit: String,
}

/// One for each promise of a store.
pub(crate) fn of(settings: &Settings) -> Vec<Guarantee> {
    vec![
        Guarantee::given(
            GuaranteeKind::SurvivesKill,
            "an append is acknowledged once the server has committed it, which is another process",
        ),
        power_loss(settings),
        Guarantee::given(
            GuaranteeKind::SharedByProcesses,
            "processes on any machine that reaches the server take turns by its row locks, and \
             leases count by its clock",
        ),
    ]
}

fn power_loss(settings: &Settings) -> Guarantee {
    let promise = GuaranteeKind::SurvivesPowerLoss;
    if !settings.fsync {
        return Guarantee::not_given(
            promise,
            "the server runs with fsync=off: after a crash of its system the whole database may be \
             damaged",
        );
    }
    if settings.synchronous_commit == "off" {
        return Guarantee::not_given(
            promise,
            "with synchronous_commit=off the last appends may be lost; the log stays whole, and a \
             writer that knew of them is told so",
        );
    }
    Guarantee::given(
        promise,
        format!(
            "with fsync=on and synchronous_commit={} an append is acknowledged only after the \
             server's disk has confirmed it; streams, which are for watching, may lose their last \
             moments",
            settings.synchronous_commit
        ),
    )
}
