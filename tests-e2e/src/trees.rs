//! The processes of stories of random trees.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use helix_agents_testkit::trees::{Booted, Process, Redelivery, Stores, Story};

use crate::runtimes::{self, World};

/// Longer than a process of a story stands still.
const LEASE: Duration = Duration::from_secs(8);

/// After how long an engine has certainly missed a process: its lease, and what else Temporal's server waits for.
const MISSES: Duration = Duration::from_secs(30);

/// `live SEED NUMBER STORE FOLDER`: says what is wrong, or nothing.
///
/// # Errors
/// If seed or number is none.
pub async fn live(
    runtime: &str,
    seed: &str,
    number: &str,
    stores: Stores,
    folder: &Path,
) -> Result<String> {
    let story = Story::new(seed.parse().context("the seed is a number")?);
    let number = number.parse().context("the process has a number")?;
    let open = move || std::future::ready(stores.clone()).boxed();
    let runtime = runtime.to_owned();
    let boot = move |process| boot(&runtime, process);
    let told = story.live(number, &open, &boot, folder).await;
    Ok(told.err().unwrap_or_default())
}

/// Whether the engine of a runtime does what was done when a process of it dies.
#[must_use]
pub fn again(runtime: &str) -> Redelivery {
    if runtime == "local:" { Redelivery::Never } else { Redelivery::Later }
}

/// Begins a process of a story on the runtime at that URL.
///
/// # Panics
/// If it cannot be opened.
pub fn boot(runtime: &str, process: Process) -> BoxFuture<'static, Booted> {
    let runtime = runtime.to_owned();
    async move {
        let world = World {
            store: Stores { state: process.store, streams: process.streams },
            llm: process.llm,
            registry: process.registry,
            durability: process.durability,
            lease: LEASE,
            grace: Duration::from_millis(100),
        };
        #[expect(clippy::expect_used, reason = "a process that does not begin has failed")]
        let opened = Arc::new(runtimes::open(&runtime, world).await.expect("a runtime"));
        let executor = Arc::clone(&opened.executor);
        let sweep = move || {
            let opened = Arc::clone(&opened);
            async move { opened.executor.sweep().await.map(drop) }.boxed()
        };
        let again = again(&runtime);
        let misses = if again == Redelivery::Never { Duration::ZERO } else { MISSES };
        Booted { executor, sweep: Arc::new(sweep), again, misses }
    }
    .boxed()
}
