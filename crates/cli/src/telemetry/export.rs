//! `helix telemetry export`.

use anyhow::Result;
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::telemetry::{otlp_json, tree_spans};
use helix_agents::terminal::Screen;

use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::location::Location;
use crate::place::{Access, Place};
use crate::telemetry_settings::{ExporterKind, TelemetrySettings};
use crate::text::count;
use crate::which::Which;

/// The options of `helix telemetry export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    which: Which,
    /// The URL of an OTLP receiver. Default: the receiver in helix.toml. `--json` without a URL prints the spans as OTLP's
    /// JSON.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
}

/// Runs the command. Spans have the same ids as those of the live export, so a second export creates no others.
pub(crate) async fn run(args: &ExportArgs, db: &Location, screen: &Screen) -> Result<Exit> {
    let place = Place::open(db, Access::Read).await?;
    let exported = export(args, &place, screen).await;
    place.close().await;
    exported.map(|()| Exit::Completed)
}

async fn export(args: &ExportArgs, place: &Place, screen: &Screen) -> Result<()> {
    let configured = ConfigFile::read()?.telemetry;
    if args.to.is_none() && configured.is_none() && !screen.is_json() {
        let message = "no receiver is configured; pass its URL with --to, print the spans with --json, or add the table \
                       `[telemetry]` to helix.toml";
        return Err(Error::new(ErrorCode::ConfigInvalid, message).into());
    }
    let mut settings = configured.unwrap_or_default();
    if let Some(url) = &args.to {
        (settings.exporter, settings.endpoint) = (ExporterKind::Otlp, Some(url.clone()));
    }
    let store = place.store()?;
    let head = args.which.head(place).await?;
    let builder = settings.builder()?;
    let options = builder.span_options().clone().all_traces();
    let spans = tree_spans(store, &head.session, &options).await?;
    if screen.is_json() && args.to.is_none() {
        let TelemetrySettings { service_name, .. } = &settings;
        screen.json(&otlp_json(spans, service_name.as_deref())?)?;
        return Ok(());
    }
    let number = spans.len();
    builder.send(spans).await?;
    if screen.is_json() {
        screen.json(&serde_json::json!({ "session": head.session, "spans": number }))?;
    } else {
        screen.field("session", &head.session)?;
        screen.field("exported", count(number as u64, "span"))?;
    }
    Ok(())
}
