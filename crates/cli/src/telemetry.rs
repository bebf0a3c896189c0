//! `helix telemetry`.

mod export;

use anyhow::Result;
use clap::Subcommand;
use helix_agents::terminal::Screen;

use crate::exit::Exit;
use crate::location::Location;

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
