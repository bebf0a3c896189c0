//! Scenarios for unavailable streams that are not in the same store as the log.

use std::future::pending;
use std::time::Instant;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::stream::{Batch, BatchReceipt, ChunkStream, StreamInfo, StreamManager};
use helix_agents_test::{Reply, within};

use super::support::{asks, helper, report, run, scripts, shout, teller, tool_results, word};
use super::{RuntimeHarness, World};

/// How unavailable streams behave.
#[derive(Debug, Clone, Copy)]
pub enum UnavailableStreams {
    /// They answer with errors, so that callers retry.
    Refusing,
    /// They never answer.
    Silent,
}

impl UnavailableStreams {
    async fn answer<T>(self) -> Result<T> {
        match self {
            Self::Refusing => {
                let message = "the streams are unavailable, as arranged";
                Err(Error::new(ErrorCode::StoreUnavailable, message))
            }
            Self::Silent => pending().await,
        }
    }
}

#[async_trait]
impl StreamManager for UnavailableStreams {
    async fn write(&self, _: &SessionId, _: Batch) -> Result<BatchReceipt> {
        self.answer().await
    }

    async fn read(&self, _: &SessionId, _: u64) -> Result<ChunkStream> {
        self.answer().await
    }

    async fn info(&self, _: &SessionId) -> Result<StreamInfo> {
        self.answer().await
    }

    async fn reset(&self, _: &SessionId) -> Result<()> {
        self.answer().await
    }

    async fn forget(&self, _: &SessionId, _: &StreamInfo) -> Result<bool> {
        self.answer().await
    }
}

/// If streams return errors, sessions still start and continue, and tools and sub-agents run. All runs together take
/// less time than one retry timeout.
pub async fn unavailable_streams_cost_a_moment(harness: &impl RuntimeHarness) {
    cost_a_moment(harness, UnavailableStreams::Refusing).await;
}

/// If streams never answer, sessions still start and continue, and tools and sub-agents run. All runs together take
/// less time than one retry timeout.
pub async fn streams_that_never_answer_cost_a_moment(harness: &impl RuntimeHarness) {
    cost_a_moment(harness, UnavailableStreams::Silent).await;
}

async fn cost_a_moment(harness: &impl RuntimeHarness, streams: UnavailableStreams) {
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
    let world = World::new(llm).registered(&agent).registered(&helper).with_streams(streams);
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
