//! The guarantees of the store, depending on the server's settings.

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};

/// The server settings that the guarantees depend on, as of opening the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) fsync: bool,
    pub(crate) synchronous_commit: String,
}

/// Returns one guarantee per [`GuaranteeKind`].
pub(crate) fn of(settings: &Settings) -> Vec<Guarantee> {
    vec![
        Guarantee::provided(
            GuaranteeKind::SurvivesKill,
            "an append is acknowledged after the server, a separate process, has committed it",
        ),
        power_loss(settings),
        Guarantee::provided(
            GuaranteeKind::SharedByProcesses,
            "processes on any machine that reaches the server synchronize through its row locks, \
             and its clock decides lease expiry",
        ),
    ]
}

fn power_loss(settings: &Settings) -> Guarantee {
    let kind = GuaranteeKind::SurvivesPowerLoss;
    if !settings.fsync {
        return Guarantee::not_provided(
            kind,
            "the server runs with fsync=off: a crash of its system may damage the whole \
             database",
        );
    }
    if settings.synchronous_commit == "off" {
        return Guarantee::not_provided(
            kind,
            "with synchronous_commit=off a server crash may lose the last appends; the log stays \
             consistent, and a process that had seen the lost appends stops with `history_lost`",
        );
    }
    Guarantee::provided(
        kind,
        format!(
            "with fsync=on and synchronous_commit={} an append is acknowledged only after the \
             server's disk has confirmed it; streams may lose their last \
             chunks",
            settings.synchronous_commit
        ),
    )
}
