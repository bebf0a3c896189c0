//! Processes of stories of random agent trees.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use helix_agents_testkit::trees::{Booted, Process, Redelivery, Stores, Story};

use crate::runtimes::{self, RuntimeConfig};

/// The lease. It is longer than any stall of a process.
const LEASE: Duration = Duration::from_secs(8);

/// The time after which an engine has certainly detected a crashed process: its lease, and the timeouts of Temporal's
/// server.
const DETECTION_TIME: Duration = Duration::from_secs(30);

/// Executes `live SEED NUMBER STORE FOLDER`. Returns the problem, or an empty text.
///
/// # Errors
/// If the seed or the number is invalid.
pub async fn live(
    runtime: &str,
    seed: &str,
    number: &str,
    stores: Stores,
    folder: &Path,
) -> Result<String> {
    let story = Story::new(seed.parse().context("the seed must be a number")?);
    let number = number.parse().context("the process must be a number")?;
    let open = move || std::future::ready(stores.clone()).boxed();
    let runtime = runtime.to_owned();
    let boot = move |process| boot(&runtime, process);
    let outcome = story.live(number, &open, &boot, folder).await;
    Ok(outcome.err().unwrap_or_default())
}

/// Returns how the runtime's engine repeats work items whose process crashed.
#[must_use]
pub fn redelivery(runtime: &str) -> Redelivery {
    if runtime == "local:" { Redelivery::Never } else { Redelivery::Later }
}

/// Starts a process of a story on the runtime at this URL.
///
/// # Panics
/// If the runtime cannot be opened.
pub fn boot(runtime: &str, process: Process) -> BoxFuture<'static, Booted> {
    let runtime = runtime.to_owned();
    async move {
        let config = RuntimeConfig {
            store: Stores { state: process.store, streams: process.streams },
            llm: process.llm,
            registry: process.registry,
            durability: process.durability,
            lease: LEASE,
            grace: Duration::from_millis(100),
            observers: Vec::new(),
        };
        #[expect(clippy::expect_used, reason = "a process that does not start has failed")]
        let opened = Arc::new(runtimes::open(&runtime, config).await.expect("a runtime"));
        let executor = Arc::clone(&opened.executor);
        let sweep = move || {
            let opened = Arc::clone(&opened);
            async move { opened.executor.sweep().await.map(drop) }.boxed()
        };
        let redelivery = redelivery(&runtime);
        let misses = if redelivery == Redelivery::Never { Duration::ZERO } else { DETECTION_TIME };
        Booted { executor, sweep: Arc::new(sweep), redelivery, misses }
    }
    .boxed()
}
