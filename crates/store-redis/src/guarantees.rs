//! The guarantees of the store, depending on the server's configuration.

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};

use crate::settings::{Persistence, ServerSettings};

/// Returns one guarantee per [`GuaranteeKind`].
pub(crate) fn of(settings: &ServerSettings) -> Vec<Guarantee> {
    vec![
        Guarantee::provided(
            GuaranteeKind::SurvivesKill,
            "an append is acknowledged after the server, a separate process, has applied it",
        ),
        power_loss(settings),
        Guarantee::provided(
            GuaranteeKind::SharedByProcesses,
            "all processes that reach the server share its sessions; a script decides each append",
        ),
    ]
}

fn power_loss(settings: &ServerSettings) -> Guarantee {
    let kind = GuaranteeKind::SurvivesPowerLoss;
    match settings.persistence {
        Persistence::Always if settings.replicas == 0 => Guarantee::provided(
            kind,
            "with appendfsync=always an append is acknowledged only after the disk has confirmed \
             it",
        ),
        Persistence::Always => Guarantee::provided(
            kind,
            "with appendfsync=always an append is acknowledged only after the disk has confirmed \
             it; a replica that is promoted may lack the last ones, and a writer that knew of them \
             stops with `history_lost`",
        ),
        Persistence::EverySecond => Guarantee::not_provided(
            kind,
            "with appendfsync=everysec a power loss may lose about the last second; a log stays consistent up to \
             there, and a process that had seen more stops with `history_lost`",
        ),
        Persistence::SomeTime => Guarantee::not_provided(
            kind,
            "with appendfsync=no a power loss may lose about the last 30 seconds; a log \
             stays consistent up to there, and a process that had seen more stops with `history_lost`",
        ),
        Persistence::Unknown => Guarantee::not_provided(
            kind,
            "the server does not reveal how often it syncs its append-only file to the disk",
        ),
        Persistence::Snapshots => Guarantee::not_provided(
            kind,
            "the server keeps no append-only file: a restart loses everything since the last snapshot; \
             set appendonly=yes",
        ),
    }
}
