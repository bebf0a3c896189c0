//! Model prices.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cost::Cost;
use crate::usage::Usage;

/// The price of a model's tokens, in US dollars per million.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Price {
    /// The price of uncached input.
    pub input: f64,
    /// The price of cached input. Default: the price of uncached input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// The price of input that the provider writes to its cache. Default: the price of uncached input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// The price of output, including reasoning.
    pub output: f64,
}

impl Price {
    /// Creates a price in US dollars per million tokens of input and of output.
    #[must_use]
    pub const fn per_million(input: f64, output: f64) -> Self {
        Self { input, cached: None, cache_write: None, output }
    }

    /// Sets the price in US dollars per million tokens of cached input.
    #[must_use]
    pub const fn cached(mut self, cached: f64) -> Self {
        self.cached = Some(cached);
        self
    }

    /// Sets the price in US dollars per million tokens of input that the provider writes to its cache.
    #[must_use]
    pub const fn cache_write(mut self, cache_write: f64) -> Self {
        self.cache_write = Some(cache_write);
        self
    }

    /// Returns the cost of this usage.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Cost {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - cached);
        let mut cost = per_token(self.input, usage.input_tokens - cached - written);
        cost += per_token(self.cached.unwrap_or(self.input), cached);
        cost += per_token(self.cache_write.unwrap_or(self.input), written);
        cost += per_token(self.output, usage.output_tokens);
        cost
    }

    fn is_sound(&self) -> bool {
        let all = [Some(self.input), self.cached, self.cache_write, Some(self.output)];
        all.into_iter().flatten().all(|price| price.is_finite() && price >= 0.0)
    }
}

/// A price of one dollar per million tokens is a millionth of a dollar per token.
fn per_token(per_million: f64, tokens: u64) -> Cost {
    let one = Cost::usd(per_million / 1e6);
    Cost(one.0.saturating_mul(tokens))
}

/// Prices by model, keyed by `provider:model` exactly as in the agent's definition. There are no
/// built-in prices, because prices change and depend on your contract with the provider. Cheap to
/// clone.
///
/// # Examples
///
/// ```
/// use helix_agents_core::budget::{Price, PriceTable};
///
/// let prices = PriceTable::new().model("openai:gpt-4o-mini", Price::per_million(0.15, 0.6));
/// assert!(prices.get("openai:gpt-4o-mini").is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PriceTable {
    prices: Arc<BTreeMap<String, Price>>,
}

impl PriceTable {
    /// Creates an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the price of a model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>, price: Price) -> Self {
        Arc::make_mut(&mut self.prices).insert(model.into(), price);
        self
    }

    /// Returns the price of a model.
    #[must_use]
    pub fn get(&self, model: &str) -> Option<&Price> {
        self.prices.get(model)
    }

    /// Returns the models whose price is not a valid amount.
    pub(crate) fn invalid_prices(&self) -> impl Iterator<Item = &str> {
        self.prices.iter().filter(|(_, price)| !price.is_sound()).map(|(model, _)| model.as_str())
    }
}
