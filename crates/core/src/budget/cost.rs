//! Money.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Parts of a dollar in a dollar.
const PARTS: f64 = 1e12;

/// An amount of US dollars, exact to a millionth of a millionth: so that a token of the cheapest
/// model has a price in whole numbers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl Cost {
    /// So many dollars; nothing for what is less than nothing or no number.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast holds at both ends"
    )]
    pub fn usd(dollars: f64) -> Self {
        Self((dollars * PARTS).round() as u64)
    }

    /// In dollars, for people.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / PARTS
    }

    /// Whether it is nothing.
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
