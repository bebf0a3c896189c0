//! Log output on standard error.

use clap::ValueEnum;
use tracing::Metadata;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use helix_agents::log_events::TARGET;
use helix_agents::terminal::output::LogOutput;

use crate::env;

/// The log filter without `--log`. Messages of database drivers are reduced, because their errors are returned and
/// reported, too.
const DEFAULT_FILTER: &str = "warn,sqlx=error";

/// The log filter with `--log`. It selects the log events and the information of all crates of Helix Agents: the target of
/// the log events is a prefix of all their targets.
const OPERATOR_FILTER: &str = "warn,sqlx=error,helix_agents=info";

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text.
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging. Without a format, warnings are logged as text, and nothing in JSON mode. `HELIX_LOG` overrides the
/// filter.
pub(crate) fn start(json: bool, format: Option<LogFormat>) {
    let wanted = env::HELIX_LOG.text();
    let default = match format {
        Some(_) => OPERATOR_FILTER,
        None if json => "off",
        None => DEFAULT_FILTER,
    };
    let shows_ends = wanted.is_some() || format.is_some();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(wanted.as_deref().unwrap_or(default)))
        .with_writer(|| LogOutput)
        .with_ansi(false);
    let started = if format == Some(LogFormat::Json) {
        let subscriber = subscriber.json().flatten_event(true);
        let subscriber = subscriber.with_current_span(false).with_span_list(false);
        subscriber.finish().try_init()
    } else {
        let shown = filter_fn(move |event| shows_ends || !is_end_of_run(event));
        subscriber.with_target(false).without_time().finish().with(shown).try_init()
    };
    // This fails only if a subscriber is already set, which is not the case here.
    drop(started);
}

/// Returns `true` for the log event of the end of a run, which the commands show themselves.
fn is_end_of_run(event: &Metadata<'_>) -> bool {
    event.target() == TARGET && event.fields().field("status").is_some()
}
