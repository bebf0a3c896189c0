//! Log output on standard error.

use tracing_subscriber::EnvFilter;

use helix_agents::terminal::output::LogOutput;

use crate::env;

/// The default log filter. Messages of database drivers are reduced, because their errors are returned
/// and reported, too.
const DEFAULT_FILTER: &str = "warn,sqlx=error";

/// Starts logging: by default warnings, and nothing in JSON mode. `HELIX_LOG` overrides that.
pub(crate) fn start(json: bool) {
    let wanted = env::HELIX_LOG.text();
    let filter = wanted.as_deref().unwrap_or(if json { "off" } else { DEFAULT_FILTER });
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(|| LogOutput)
        .with_ansi(false)
        .with_target(false)
        .without_time();
    // This fails only if a subscriber is already set, which is not the case here.
    drop(subscriber.try_init());
}
