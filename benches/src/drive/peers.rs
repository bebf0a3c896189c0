//! What other frameworks cost: figures that were measured once, with their conditions.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// All figures.
#[derive(Debug, Deserialize)]
pub(super) struct Peers {
    pub(super) conditions: String,
    #[serde(rename = "figure")]
    figures: Vec<PeerFigure>,
}

/// One figure of all of them.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct PeerFigure {
    key: String,
    unit: String,
    #[serde(default)]
    more_is_better: bool,
    /// The bare loop's beside them.
    floor: Option<f64>,
    peers: BTreeMap<String, f64>,
}

impl Peers {
    pub(super) fn load() -> Result<Self> {
        toml::from_str(include_str!("../../peers.toml")).context("peers.toml cannot be read")
    }

    pub(super) fn of(&self, key: &str) -> Option<&PeerFigure> {
        self.figures.iter().find(|figure| figure.key == key)
    }
}

impl PeerFigure {
    /// The best of them, with its ratio to the bare loop beside it.
    pub(super) fn best(&self) -> Option<String> {
        let by_value = |a: &(&String, &f64), b: &(&String, &f64)| a.1.total_cmp(b.1);
        let best = match self.more_is_better {
            true => self.peers.iter().max_by(by_value),
            false => self.peers.iter().min_by(by_value),
        };
        let (name, value) = best?;
        let ratio = self.floor.map(|floor| format!(" ({:.1}×)", value / floor));
        Some(format!("{name} {value} {}{}", self.unit, ratio.unwrap_or_default()))
    }
}
