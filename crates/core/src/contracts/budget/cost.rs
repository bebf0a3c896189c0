//! Amounts of money.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The number of units in a dollar.
const PARTS: f64 = 1e12;

/// An amount of US dollars with a resolution of a trillionth of a dollar, so that one token of the
/// cheapest model has an integer price.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl Cost {
    /// Creates an amount from US dollars. Negative values and NaN become zero.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast holds at both ends"
    )]
    pub fn usd(dollars: f64) -> Self {
        Self((dollars * PARTS).round() as u64)
    }

    /// Returns the amount in US dollars, for display.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for display")]
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / PARTS
    }

    /// Returns `true` if the amount is zero.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.6}", self.as_usd())
    }
}
