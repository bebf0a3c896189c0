//! Streams that are elsewhere than the log, and away.

use std::future::pending;
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

/// Streams that are away.
#[derive(Debug, Clone, Copy)]
pub enum Away {
    /// They answer with errors, so that they are asked again and again.
    Refusing,
    /// They never answer.
    Silent,
}

impl Away {
    async fn answer<T>(self) -> Result<T> {
        match self {
            Self::Refusing => {
                let message = "the streams are away, as arranged";
                Err(Error::new(ErrorCode::StoreUnavailable, message))
            }
            Self::Silent => pending().await,
        }
    }
}

#[async_trait]
impl StreamManager for Away {
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

    async fn forget(&self, _: &SessionId) -> Result<()> {
        self.answer().await
    }
}

/// Sessions start and go on, tools and sub-agents run, and each run waits a moment for the streams and not at each of
/// its appends for as long as a store is asked again.
pub async fn streams_that_are_away_cost_a_moment(harness: &impl RuntimeHarness) {
    cost_a_moment(harness, Away::Refusing).await;
}

/// The same if nothing comes back, not even an error.
pub async fn streams_that_never_answer_cost_a_moment(harness: &impl RuntimeHarness) {
    cost_a_moment(harness, Away::Silent).await;
}

async fn cost_a_moment(harness: &impl RuntimeHarness, streams: Away) {
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
    let world = World::new(llm).registered(&agent).registered(&helper).showing_on(streams);
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
