//! Streams that are elsewhere than the log, and away.

use std::time::Instant;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};

use super::support::{asks, helper, report, run, scripts, shout, teller, told_by, word};
use super::{RuntimeHarness, World};
use crate::gate::within;
use crate::scripted::Reply;

/// Answers nothing but that it is away, so that it is asked again and again.
#[derive(Debug)]
struct Away;

fn away<T>() -> Result<T> {
    Err(Error::new(ErrorCode::StoreUnavailable, "the streams are away, as arranged"))
}

#[async_trait]
impl StreamManager for Away {
    async fn write(&self, _: &SessionId, _: Batch) -> Result<BatchReceipt> {
        away()
    }

    async fn read(&self, _: &SessionId, _: u64) -> Result<ChunkStream> {
        away()
    }

    async fn info(&self, _: &SessionId) -> Result<StreamInfo> {
        away()
    }

    async fn reset(&self, _: &SessionId) -> Result<()> {
        away()
    }

    async fn forget(&self, _: &SessionId) -> Result<()> {
        away()
    }
}

/// Sessions start and go on, tools and sub-agents run, and each run waits a moment for the streams and not at each of
/// its appends for as long as a store is asked again.
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
    let world = World::new(llm).registered(&agent).registered(&helper).showing_on(Away);
    let patience = world.lease * 2 / 3;
    let executor = harness.boot(world).await;
    let begun = Instant::now();
    for input in ["go", "more"] {
        let ended = within(run(&*executor, &agent, input)).await;
        assert_eq!(ended.status, RunStatus::Completed, "{ended:?}");
    }
    assert!(begun.elapsed() < patience, "{:?}", begun.elapsed());
    assert!(!told_by(harness, "subagent__helper").await.contains("error"));
}
