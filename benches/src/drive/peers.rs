//! Figures of other frameworks, which were measured once, with their conditions.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// All figures of other frameworks.
#[derive(Debug, Deserialize)]
pub(super) struct Peers {
    pub(super) conditions: String,
    #[serde(rename = "figure")]
    figures: Vec<PeerFigure>,
}

/// One figure of all other frameworks.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct PeerFigure {
    key: String,
    unit: String,
    #[serde(default)]
    more_is_better: bool,
    /// The figure of the bare loop in the same measurement.
    floor: Option<f64>,
    peers: BTreeMap<String, f64>,
}

impl Peers {
    pub(super) fn load() -> Result<Self> {
        toml::from_str(include_str!("../../peers.toml")).context("peers.toml is unreadable")
    }

    pub(super) fn of(&self, key: &str) -> Option<&PeerFigure> {
        self.figures.iter().find(|figure| figure.key == key)
    }
}

impl PeerFigure {
    /// Returns the best framework and its ratio to the bare loop.
    pub(super) fn best(&self) -> Option<String> {
        let (name, value) = self.ranked().into_iter().next()?;
        let ratio = self.floor.map(|floor| format!(" ({:.1}×)", value / floor));
        Some(format!("{name} {value} {}{}", self.unit, ratio.unwrap_or_default()))
    }

    /// Returns the best frameworks, without the unit.
    pub(super) fn named(&self, most: usize) -> String {
        let best = self.ranked().into_iter().take(most);
        best.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    }

    /// Returns the frameworks, best first.
    fn ranked(&self) -> Vec<(&str, f64)> {
        let mut all: Vec<(&str, f64)> =
            self.peers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        if self.more_is_better {
            all.reverse();
        }
        all
    }
}
