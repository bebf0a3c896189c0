//! The log output of the process, on standard error.

use tracing_subscriber::EnvFilter;

use crate::env;
use crate::terminal::LogOutput;

/// What is logged unless told: what the driver of a store has to say comes back as an error, too.
const USUAL: &str = "warn,sqlx=error";

/// Warnings for people, nothing for programs, unless `HELIX_LOG` says otherwise.
pub(crate) fn start(json: bool) {
    let wanted = env::HELIX_LOG.text();
    let filter = wanted.as_deref().unwrap_or(if json { "off" } else { USUAL });
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(|| LogOutput)
        .with_ansi(false)
        .with_target(false)
        .without_time();
    // Only the first one of a process counts, and this is it.
    drop(subscriber.try_init());
}
