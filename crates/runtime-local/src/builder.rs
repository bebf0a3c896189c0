//! How a local runtime is put together.

use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::session::Durability;
use helix_agents_runtime::{Settings, builder_methods};

use crate::guarantees;
use crate::runtime::LocalRuntime;

/// A local runtime under way. See [`LocalRuntime::builder`].
#[derive(Debug, Default)]
#[must_use = "call `build` to get the runtime"]
pub struct LocalRuntimeBuilder {
    settings: Settings,
}

impl LocalRuntimeBuilder {
    builder_methods!();

    /// When facts are appended. Default: as they happen.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.settings.durability = durability;
        self
    }

    /// What may be relied on in a runtime that is put together so, and why: one for each of
    /// [`GuaranteeKind::OF_RUNTIMES`](helix_agents_core::guarantee::GuaranteeKind::OF_RUNTIMES), in that
    /// order. Without a store yet, as with one that several processes share.
    pub fn guarantees(&self) -> Vec<Guarantee> {
        let Settings { durability, lease, store, .. } = &self.settings;
        guarantees::of(*durability, *lease, store.as_deref())
    }

    /// The runtime.
    ///
    /// # Errors
    /// [`ConfigInvalid`](helix_agents_core::error::ErrorCode::ConfigInvalid) if something is missing or out of range.
    pub fn build(self) -> Result<LocalRuntime> {
        Ok(LocalRuntime::new(self.settings.context()?))
    }
}
