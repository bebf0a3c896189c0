//! The amount of reasoning before a reply, and its display.

use serde::{Deserialize, Serialize};

/// The reasoning settings of a model call.
///
/// An amount that a known model does not support is rejected before the run starts. Without settings, the provider
/// decides.
///
/// ```
/// use helix_agents_core::llm::{Effort, ThinkingConfig, ThinkingDisplay};
///
/// let thinking = ThinkingConfig::effort(Effort::High).display(ThinkingDisplay::Summarized);
/// assert_eq!(thinking, ThinkingConfig { display: ThinkingDisplay::Summarized, ..Effort::High.into() });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThinkingConfig {
    /// The amount of reasoning.
    pub amount: ThinkingAmount,
    /// Whether the reasoning is shown.
    #[serde(default, skip_serializing_if = "ThinkingDisplay::is_default")]
    pub display: ThinkingDisplay,
}

/// An amount of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkingAmount {
    /// The model does not reason.
    Off,
    /// The model decides how much it reasons, up to this effort.
    Effort(Effort),
    /// The model reasons for at most this number of tokens.
    Budget(u32),
}

/// A level of effort. Models support some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Effort {
    /// The least reasoning.
    Minimal,
    /// Little reasoning.
    Low,
    /// Moderate reasoning.
    Medium,
    /// Much reasoning.
    High,
    /// More reasoning than `High`.
    XHigh,
    /// The most reasoning.
    Max,
}

/// Whether the reasoning of a model is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkingDisplay {
    /// The provider's default.
    #[default]
    ProviderDefault,
    /// The provider sends a summary, or the reasoning itself if it has no summaries.
    Summarized,
    /// The provider sends no readable reasoning.
    Omitted,
}

impl ThinkingConfig {
    /// Turns reasoning off.
    #[must_use]
    pub const fn off() -> Self {
        Self::of(ThinkingAmount::Off)
    }

    /// Lets the model decide how much it reasons, up to this effort.
    #[must_use]
    pub const fn effort(effort: Effort) -> Self {
        Self::of(ThinkingAmount::Effort(effort))
    }

    /// Limits the reasoning to this number of tokens.
    #[must_use]
    pub const fn budget(tokens: u32) -> Self {
        Self::of(ThinkingAmount::Budget(tokens))
    }

    const fn of(amount: ThinkingAmount) -> Self {
        Self { amount, display: ThinkingDisplay::ProviderDefault }
    }

    /// Sets whether the reasoning is shown.
    #[must_use]
    pub const fn display(mut self, display: ThinkingDisplay) -> Self {
        self.display = display;
        self
    }
}

impl From<Effort> for ThinkingConfig {
    fn from(effort: Effort) -> Self {
        Self::effort(effort)
    }
}

impl Effort {
    /// Returns the name of the level, which most providers use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl ThinkingDisplay {
    fn is_default(&self) -> bool {
        *self == Self::ProviderDefault
    }
}
