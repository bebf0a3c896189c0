//! Scenarios for unavailable streams that are not in the same store as the log.

use std::time::Instant;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};

use super::support::{asks, helper, report, run, scripts, shout, teller, tool_results, word};
use super::{RuntimeHarness, World};
use crate::gate::within;
use crate::scripted::Reply;

/// A stream manager that is always unavailable, so that its callers retry.
#[derive(Debug)]
struct UnavailableStreams;

fn unavailable<T>() -> Result<T> {
    Err(Error::new(ErrorCode::StoreUnavailable, "the streams are unavailable, as arranged"))
}

#[async_trait]
impl StreamManager for UnavailableStreams {
    async fn write(&self, _: &SessionId, _: Batch) -> Result<BatchReceipt> {
        unavailable()
    }

    async fn read(&self, _: &SessionId, _: u64) -> Result<ChunkStream> {
        unavailable()
    }

    async fn info(&self, _: &SessionId) -> Result<StreamInfo> {
        unavailable()
    }

    async fn reset(&self, _: &SessionId) -> Result<()> {
        unavailable()
    }

    async fn forget(&self, _: &SessionId) -> Result<()> {
        unavailable()
    }
}

/// Sessions start and continue, and tools and sub-agents run. Each run waits for the streams once and
/// briefly, not at each append for the whole retry timeout.
pub async fn streams_that_are_away_cost_a_moment(harness: &impl RuntimeHarness) {
    let helper = helper("helper").build().unwrap();
    let agent = teller().tool(shout()).sub_agent(&helper).build().unwrap();
    let llm = scripts(
        [
            Reply::tool_call("shout", word("a")),
            asks(&["helper"]),
            Reply::text("done"),
            Reply::text("done again"),
        ],
        [report()],
    );
    let world =
        World::new(llm).registered(&agent).registered(&helper).showing_on(UnavailableStreams);
    let retry_timeout = world.lease * 2 / 3;
    let executor = harness.boot(world).await;
    let started = Instant::now();
    for input in ["go", "more"] {
        let ended = within(run(&*executor, &agent, input)).await;
        assert_eq!(ended.status, RunStatus::Completed, "{ended:?}");
    }
    assert!(started.elapsed() < retry_timeout, "{:?}", started.elapsed());
    assert!(!tool_results(harness, "subagent__helper").await.contains("error"));
}
