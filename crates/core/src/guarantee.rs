//! What a store or a runtime promises, said by itself and with the reason, so that nobody who shows
//! it to people has words of their own for it.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// Something that people want to rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuaranteeKind {
    /// A store's: acknowledged appends survive a kill of the process.
    SurvivesKill,
    /// A store's: acknowledged appends survive a crash of the system or a loss of power.
    SurvivesPowerLoss,
    /// A store's: several processes can work on its sessions.
    SharedByProcesses,
    /// A runtime's: an effect whose outcome is recorded is never carried out again.
    RecordedOnce,
    /// A runtime's: a crash costs no more than the effects that were under way.
    LosesNoFinishedEffect,
    /// A runtime's: another process can go on with a run whose process died.
    TakenOver,
    /// A runtime's: of several processes that go on with a session, one does.
    OneOwner,
}

impl GuaranteeKind {
    /// What every store says something about.
    pub const OF_STORES: [Self; 3] =
        [Self::SurvivesKill, Self::SurvivesPowerLoss, Self::SharedByProcesses];

    /// What every runtime says something about.
    pub const OF_RUNTIMES: [Self; 4] =
        [Self::RecordedOnce, Self::LosesNoFinishedEffect, Self::TakenOver, Self::OneOwner];

    /// The stable name, for programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SurvivesKill => "survives_kill",
            Self::SurvivesPowerLoss => "survives_power_loss",
            Self::SharedByProcesses => "shared_by_processes",
            Self::RecordedOnce => "recorded_once",
            Self::LosesNoFinishedEffect => "loses_no_finished_effect",
            Self::TakenOver => "taken_over",
            Self::OneOwner => "one_owner",
        }
    }

    /// The same in words, for people.
    #[must_use]
    pub const fn statement(self) -> &'static str {
        match self {
            Self::SurvivesKill => "what was acknowledged survives a killed process",
            Self::SurvivesPowerLoss => "what was acknowledged survives a power failure",
            Self::SharedByProcesses => "several processes can work on its sessions",
            Self::RecordedOnce => "a recorded effect is never carried out again",
            Self::LosesNoFinishedEffect => "a crash repeats at most the effects under way",
            Self::TakenOver => "another process can go on with a run whose process died",
            Self::OneOwner => "of several processes that resume a session one runs it",
        }
    }
}

impl fmt::Display for GuaranteeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for GuaranteeKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Whether a promise holds, as something is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Guarantee {
    /// The promise.
    pub promise: GuaranteeKind,
    /// Whether it holds.
    pub holds: bool,
    /// Why, or why not: a sentence or two without a full stop at the end.
    pub reason: Cow<'static, str>,
}

impl Guarantee {
    /// The promise holds, because of this.
    pub fn given(promise: GuaranteeKind, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { promise, holds: true, reason: reason.into() }
    }

    /// The promise does not hold, because of this.
    pub fn not_given(promise: GuaranteeKind, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { promise, holds: false, reason: reason.into() }
    }
}
