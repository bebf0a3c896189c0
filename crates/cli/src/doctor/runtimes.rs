//! The runtimes of this program.

use std::io;

use helix_agents::RuntimeBuilder as _;
use helix_agents::guarantee::Guarantee;
use helix_agents::prelude::LocalRuntime;
use helix_agents::session::Durability;
use serde::Serialize;

use super::page::Page;
use crate::session_agent::LEASE;

/// The runtimes that this program does not include.
const ABSENT: [&str; 2] = ["temporal", "dbos"];

/// The runtimes section of the report.
#[derive(Debug, Serialize)]
pub(super) struct Runtimes {
    local: Local,
    /// The runtimes that this program does not include.
    absent: [&'static str; 2],
}

/// The local runtime.
#[derive(Debug, Serialize)]
struct Local {
    lease_ms: u128,
    /// The guarantees if events are appended after each effect, as `helix` does.
    per_effect: Vec<Guarantee>,
    /// The guarantees if events are appended once per step.
    per_step: Vec<Guarantee>,
}

impl Runtimes {
    pub(super) fn check() -> Self {
        let of =
            |durability| LocalRuntime::builder().lease(LEASE).durability(durability).guarantees();
        let local = Local {
            lease_ms: LEASE.as_millis(),
            per_effect: of(Durability::PerEffect),
            per_step: of(Durability::PerStep),
        };
        Self { local, absent: ABSENT }
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.heading("Runtimes")?;
        let lease = LEASE.as_secs();
        page.row(
            "local",
            &format!("runs in this process; lease of {lease} s; appends per effect"),
        )?;
        for guarantee in &self.local.per_effect {
            page.guarantee(guarantee)?;
        }
        page.row("", "differences with one append per step:")?;
        let differs = |guarantee: &&Guarantee| !self.local.per_effect.contains(guarantee);
        for guarantee in self.local.per_step.iter().filter(differs) {
            page.guarantee(guarantee)?;
        }
        page.row(
            "not included",
            &format!("{}: this program has only the local runtime", ABSENT.join(", ")),
        )
    }
}
