//! The guarantees of stores and runtimes. Each store and runtime reports its own guarantees with a
//! reason, so that all reports use the same words.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// The kind of a guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuaranteeKind {
    /// Of a store: acknowledged appends survive a killed process.
    SurvivesKill,
    /// Of a store: acknowledged appends survive a system crash or power failure.
    SurvivesPowerLoss,
    /// Of a store: several processes can work on its sessions.
    SharedByProcesses,
    /// Of a runtime: an effect whose outcome is recorded is never executed again.
    RecordedOnce,
    /// Of a runtime: a crash repeats at most the effects that were in progress.
    LosesNoFinishedEffect,
    /// Of a runtime: another process can take over a run whose process crashed.
    TakenOver,
    /// Of a runtime: if several processes resume a session, exactly one runs it.
    OneOwner,
}

impl GuaranteeKind {
    /// The guarantees that every store reports.
    pub const OF_STORES: [Self; 3] =
        [Self::SurvivesKill, Self::SurvivesPowerLoss, Self::SharedByProcesses];

    /// The guarantees that every runtime reports.
    pub const OF_RUNTIMES: [Self; 4] =
        [Self::RecordedOnce, Self::LosesNoFinishedEffect, Self::TakenOver, Self::OneOwner];

    /// Returns the stable name, for programs.
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

    /// Returns a description for humans.
    #[must_use]
    pub const fn statement(self) -> &'static str {
        match self {
            Self::SurvivesKill => "acknowledged appends survive a killed process",
            Self::SurvivesPowerLoss => "acknowledged appends survive a power failure",
            Self::SharedByProcesses => "several processes can work on its sessions",
            Self::RecordedOnce => "a recorded effect is never executed again",
            Self::LosesNoFinishedEffect => "a crash repeats at most the effects in progress",
            Self::TakenOver => "another process can take over a run whose process crashed",
            Self::OneOwner => "if several processes resume a session, exactly one runs it",
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

/// Whether a guarantee holds in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Guarantee {
    /// The kind of the guarantee.
    pub promise: GuaranteeKind,
    /// Whether the guarantee holds.
    pub holds: bool,
    /// The reason why it holds or not: one or two sentences without a trailing full stop.
    pub reason: Cow<'static, str>,
}

impl Guarantee {
    /// Creates a guarantee that holds for this reason.
    pub fn provided(promise: GuaranteeKind, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { promise, holds: true, reason: reason.into() }
    }

    /// Creates a guarantee that does not hold for this reason.
    pub fn not_provided(promise: GuaranteeKind, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { promise, holds: false, reason: reason.into() }
    }
}
