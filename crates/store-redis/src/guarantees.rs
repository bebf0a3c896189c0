//! What may be relied on, by how the server is configured.

use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};

use crate::settings::{Persistence, ServerSettings};

/// One for each promise of a store.
pub(crate) fn of(settings: &ServerSettings) -> Vec<Guarantee> {
    vec![
        Guarantee::given(
            GuaranteeKind::SurvivesKill,
            "an append is acknowledged once the server has it, which is another process",
        ),
        power_loss(settings),
        Guarantee::given(
            GuaranteeKind::SharedByProcesses,
            "whatever reaches the server works on the same sessions; a script decides each append",
        ),
    ]
}

fn power_loss(settings: &ServerSettings) -> Guarantee {
    let promise = GuaranteeKind::SurvivesPowerLoss;
    match settings.persistence {
        Persistence::Always if settings.replicas == 0 => Guarantee::given(
            promise,
            "with appendfsync=always an append is acknowledged only after the disk has confirmed \
             it",
        ),
        Persistence::Always => Guarantee::given(
            promise,
            "with appendfsync=always an append is acknowledged only after the disk has confirmed \
             it; a replica that takes over may lack the last ones, and a writer that knew of them \
             is told so",
        ),
        Persistence::EverySecond => Guarantee::not_given(
            promise,
            "with appendfsync=everysec about the last second may be lost; a log stays whole up to \
             there, and a writer that knew of more is told so",
        ),
        Persistence::SomeTime => Guarantee::not_given(
            promise,
            "with appendfsync=no the last appends may be lost, some 30 seconds of them; a log \
             stays whole up to there, and a writer that knew of more is told so",
        ),
        Persistence::Unknown => Guarantee::not_given(
            promise,
            "the server does not tell how often it forces its append-only file to the disk",
        ),
        Persistence::Snapshots => Guarantee::not_given(
            promise,
            "the server keeps no append-only file: a restart leaves what the last snapshot has; \
             set appendonly=yes",
        ),
    }
}
