//! The processes of stories of random trees.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use helix_agents::error::Error;
use helix_agents::executor::AgentExecutor as _;
use helix_agents::runtime_local::LocalRuntime;
use helix_agents_testkit::trees::{Again, Booted, Process, Stores, Story};

/// `live SEED NUMBER STORE FOLDER`: says what is wrong, or nothing.
///
/// # Errors
/// If seed or number is none.
pub async fn live(seed: &str, number: &str, stores: Stores, folder: &Path) -> Result<String> {
    let story = Story::new(seed.parse().context("the seed is a number")?);
    let number = number.parse().context("the process has a number")?;
    let open = move || std::future::ready(stores.clone()).boxed();
    let told = story.live(number, &open, &boot, folder).await;
    Ok(told.err().unwrap_or_default())
}

/// Begins a process of a story.
///
/// # Panics
/// Never: nothing is missing that a runtime needs.
pub fn boot(process: Process) -> Booted {
    let runtime = LocalRuntime::builder()
        .state_store(process.store)
        .stream_manager(process.streams)
        .llm_adapter(process.llm)
        .registry(process.registry)
        .durability(process.durability)
        .grace(Duration::from_millis(100))
        .build();
    #[expect(clippy::expect_used, reason = "nothing is missing above")]
    let runtime = runtime.expect("a runtime");
    let sweeper = runtime.clone();
    let sweep = move || {
        let runtime = sweeper.clone();
        let swept = async move { runtime.sweep().await.map(drop) };
        Box::pin(swept) as std::pin::Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>
    };
    Booted { executor: Arc::new(runtime), sweep: Arc::new(sweep), again: Again::Never }
}
