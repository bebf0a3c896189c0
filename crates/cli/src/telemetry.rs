//! The export of spans, which the table `[telemetry]` of helix.toml configures, and `helix telemetry`.

mod export;
mod settings;

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use helix_agents::RuntimeBuilder;
use helix_agents::telemetry::Telemetry;
use helix_agents::terminal::{Screen, notice};

use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::location::Location;
use crate::text::count;

#[cfg(test)]
pub(crate) use self::settings::{ContentSetting, LayoutSetting};
pub(crate) use self::settings::{ExporterKind, TelemetrySettings};

/// The time for exporting the remaining spans at the end of a command.
const GRACE: Duration = Duration::from_secs(5);

/// The subcommands of `helix telemetry`.
#[derive(Debug, Subcommand)]
pub(crate) enum TelemetryCommand {
    /// Export the spans of a recorded session and of its child sessions.
    Export(export::ExportArgs),
}

/// Runs a subcommand.
pub(crate) async fn run(command: TelemetryCommand, db: &Location, screen: &Screen) -> Result<Exit> {
    match command {
        TelemetryCommand::Export(args) => export::run(&args, db, screen).await,
    }
}

/// Starts the export that helix.toml configures.
///
/// # Errors
/// Returns an error if the configuration is invalid.
pub(crate) fn start() -> Result<Option<Telemetry>> {
    let Some(settings) = ConfigFile::read()?.telemetry else { return Ok(None) };
    Ok(Some(settings.builder()?.build()?))
}

/// Lets a runtime export its spans.
pub(crate) fn observed<B: RuntimeBuilder>(builder: B, telemetry: Option<&Telemetry>) -> B {
    match telemetry {
        Some(telemetry) => builder.observer(telemetry.clone()),
        None => builder,
    }
}

/// Exports the remaining spans, and reports those that were lost.
pub(crate) async fn shut_down(telemetry: Option<&Telemetry>) {
    let Some(telemetry) = telemetry else { return };
    telemetry.shutdown(GRACE).await;
    let dropped = telemetry.dropped();
    if dropped > 0 {
        let spans = count(dropped, "span");
        notice(&format!(
            "{spans} could not be exported; `helix telemetry export` exports a session again"
        ));
    }
}
