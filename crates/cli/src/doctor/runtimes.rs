//! What carries out runs here.

use std::io;

use helix_agents::guarantee::Guarantee;
use helix_agents::prelude::LocalRuntime;
use helix_agents::session::Durability;
use serde::Serialize;

use super::page::Page;
use crate::cast::LEASE;

/// The runtimes that this program does without.
const ABSENT: [&str; 2] = ["temporal", "dbos"];

/// What can carry out runs.
#[derive(Debug, Serialize)]
pub(super) struct Runtimes {
    local: Local,
    /// Those that this program does not have.
    absent: [&'static str; 2],
}

/// The runtime of this process.
#[derive(Debug, Serialize)]
struct Local {
    lease_ms: u128,
    /// When facts are appended as they happen, which is what `helix` does.
    per_effect: Vec<Guarantee>,
    /// When they are appended once per step.
    per_step: Vec<Guarantee>,
}

impl Runtimes {
    pub(super) fn look() -> Self {
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
            &format!("runs in this process; {lease} s of lease; appends per effect"),
        )?;
        for guarantee in &self.local.per_effect {
            page.guarantee(guarantee)?;
        }
        page.row("", "with one append per step it would differ in this:")?;
        let differs = |it: &&Guarantee| !self.local.per_effect.contains(it);
        for guarantee in self.local.per_step.iter().filter(differs) {
            page.guarantee(guarantee)?;
        }
        page.row("not here", &format!("{}: this program has no other runtime", ABSENT.join(", ")))
    }
}
