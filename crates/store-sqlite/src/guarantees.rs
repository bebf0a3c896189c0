//! The guarantees of the store, depending on how the file is opened.

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};

use crate::config::Synchronous;

/// Returns one guarantee per [`GuaranteeKind`].
pub(crate) fn of(synchronous: Synchronous) -> Vec<Guarantee> {
    vec![
        Guarantee::provided(
            GuaranteeKind::SurvivesKill,
            "an append is acknowledged after the operating system has accepted it into the write-ahead \
             log, which the next process that opens the file reads",
        ),
        power_loss(synchronous),
        Guarantee::provided(
            GuaranteeKind::SharedByProcesses,
            "processes of one machine synchronize through SQLite's locks on the file, which has to be on \
             a local disk",
        ),
    ]
}

fn power_loss(synchronous: Synchronous) -> Guarantee {
    let kind = GuaranteeKind::SurvivesPowerLoss;
    match synchronous {
        Synchronous::Full => Guarantee::provided(
            kind,
            "with synchronous=FULL an append is acknowledged only after the disk has confirmed it; \
             streams may lose their last chunks",
        ),
        Synchronous::Normal => Guarantee::not_provided(
            kind,
            "with synchronous=NORMAL a system crash may lose the last appends; the log stays consistent, \
             and a process that had seen the lost appends stops with `history_lost`",
        ),
    }
}
