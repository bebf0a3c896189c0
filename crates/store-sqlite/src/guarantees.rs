//! What may be relied on, by how the file is opened.

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};

use crate::config::Synchronous;

/// One for each promise of a store.
pub(crate) fn of(synchronous: Synchronous) -> Vec<Guarantee> {
    vec![
        Guarantee::given(
            GuaranteeKind::SurvivesKill,
            "an append is acknowledged once the operating system has it, in a write-ahead log that \
             the next process to open the file reads",
        ),
        power_loss(synchronous),
        Guarantee::given(
            GuaranteeKind::SharedByProcesses,
            "processes of one machine take turns by SQLite's locks on the file, which has to be on \
             a local disk",
        ),
    ]
}

fn power_loss(synchronous: Synchronous) -> Guarantee {
    let promise = GuaranteeKind::SurvivesPowerLoss;
    match synchronous {
        Synchronous::Full => Guarantee::given(
            promise,
            "with synchronous=FULL an append is acknowledged only after the disk has confirmed it; \
             streams, which are for watching, may lose their last moments",
        ),
        Synchronous::Normal => Guarantee::not_given(
            promise,
            "with synchronous=NORMAL the last appends may be lost; the log stays whole, and a \
             writer that knew of them is told so",
        ),
    }
}
