//! The export of spans and metrics while runs execute, which the table `[telemetry]` of helix.toml configures.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use helix_agents::telemetry::Telemetry;
use helix_agents::{AnyStore, RuntimeBuilder};

use crate::config_file::ConfigFile;

/// The time for exporting the remaining spans at the end of a command.
const GRACE: Duration = Duration::from_secs(5);

/// Starts the export that helix.toml configures.
///
/// # Errors
/// Returns an error if the configuration is invalid.
pub(crate) fn start() -> Result<Option<Telemetry>> {
    let Some(settings) = ConfigFile::read()?.telemetry else { return Ok(None) };
    Ok(Some(settings.builder()?.build()?))
}

/// Sets the store of a runtime, and lets the runtime export its spans and metrics.
pub(crate) fn observed<B: RuntimeBuilder>(
    builder: B,
    store: &AnyStore,
    telemetry: Option<&Telemetry>,
) -> B {
    let Some(telemetry) = telemetry else { return builder.store(store.clone()) };
    let store = Arc::new(store.clone());
    let measured = telemetry.measured_store(Arc::<AnyStore>::clone(&store));
    builder.state_store(Arc::new(measured)).stream_manager(store).observer(telemetry.clone())
}

/// Exports the remaining spans, and reports those that were lost.
pub(crate) async fn shut_down(telemetry: Option<&Telemetry>) {
    let Some(telemetry) = telemetry else { return };
    telemetry.shutdown(GRACE).await;
    let dropped = telemetry.dropped();
    if dropped > 0 {
        tracing::warn!(
            dropped,
            "spans could not be exported; `helix telemetry export` exports a session again"
        );
    }
}
