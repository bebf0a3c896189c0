//! The builder of a local runtime.

use std::sync::Arc;

use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::session::Durability;
use helix_agents_runtime::{BuiltEngine, RuntimeBuilder, Settings};

use crate::guarantees;
use crate::runtime::{LocalEngine, LocalRuntime};

/// A builder for [`LocalRuntime`]. See [`LocalRuntime::builder`].
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
/// use helix_agents_store_memory::MemoryStore;
/// # use helix_agents_test::ScriptedLlm;
///
/// # fn main() -> helix_agents_core::error::Result<()> {
/// # let model = ScriptedLlm::new([]);
/// let builder = LocalRuntime::builder()
///     .store(MemoryStore::new())
///     .llm(model)
///     .lease(Duration::from_secs(60));
/// for guarantee in builder.guarantees() {
///     println!("{}: {}", guarantee.promise, guarantee.reason);
/// }
/// let runtime = builder.build()?;
/// assert!(LocalRuntime::builder().build().is_err()); // no store and no model
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[must_use = "call `build` to get the runtime"]
pub struct LocalRuntimeBuilder {
    settings: Settings,
}

impl BuiltEngine for LocalEngine {
    type Builder = LocalRuntimeBuilder;
}

impl RuntimeBuilder for LocalRuntimeBuilder {
    fn settings(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

impl LocalRuntimeBuilder {
    /// Sets the durability mode: whether replies and results are appended as they arrive, or once per step. Default:
    /// [`Durability::PerEffect`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.settings.durability = durability;
        self
    }

    /// Returns the guarantees of a runtime with these options and their reasons, one for each of
    /// [`GuaranteeKind::OF_RUNTIMES`](helix_agents_core::guarantee::GuaranteeKind::OF_RUNTIMES), in that
    /// order. If no store is set yet, a store that several processes share is assumed.
    pub fn guarantees(&self) -> Vec<Guarantee> {
        let Settings { durability, lease, store, .. } = &self.settings;
        guarantees::runtime_guarantees(*durability, *lease, store.as_deref())
    }

    /// Builds the runtime.
    ///
    /// # Errors
    /// Returns [`ConfigInvalid`](helix_agents_core::error::ErrorCode::ConfigInvalid) if a required option is missing or
    /// a value is out of range.
    pub fn build(self) -> Result<LocalRuntime> {
        let context = self.settings.context()?;
        let engine = LocalEngine::new(Arc::clone(&context));
        Ok(LocalRuntime::new(context, Arc::new(engine)))
    }
}
