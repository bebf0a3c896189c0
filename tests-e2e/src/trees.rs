//! One process of a story of a random tree.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use helix_agents::error::Error;
use helix_agents::executor::AgentExecutor as _;
use helix_agents::runtime_local::LocalRuntime;
use helix_agents_testkit::trees::{Booted, Process, Story};
use helix_agents_tests_e2e::stores::Opened;

/// `live SEED NUMBER STORE FOLDER`: says what is wrong, or nothing.
pub(crate) async fn live(seed: &str, number: &str, store: Opened, folder: &Path) -> Result<String> {
    let story = Story::new(seed.parse().context("the seed is a number")?);
    let number = number.parse().context("the process has a number")?;
    let told = story.live(number, store.state, store.streams, &boot, folder).await;
    Ok(told.err().unwrap_or_default())
}

fn boot(process: Process) -> Booted {
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
    Booted { executor: Arc::new(runtime), sweep: Arc::new(sweep) }
}
