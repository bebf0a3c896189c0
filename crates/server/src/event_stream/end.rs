//! The end of a stream: whether more chunks will follow.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use helix_agents_core::error::Result;
use helix_agents_core::session::StreamStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ownership::SessionIdentity;
use crate::service::Service;

/// The data of the event `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct End {
    /// The state in which the session rests.
    pub(crate) status: EndStatus,
}

impl End {
    /// The end of the stream of a session that was deleted, whether or not another session has its id now.
    pub(super) const DELETED: Self = Self { status: EndStatus::Deleted };
}

/// The state of a session whose stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndStatus {
    /// The session waits for an answer or a child, or was interrupted. It continues when it is resumed.
    Paused,
    /// The last turn completed, or the session was aborted.
    Ended,
    /// The last run failed.
    Failed,
    /// The session was deleted.
    Deleted,
}

/// Checks whether the stream of a root session has ended, whenever there is a reason to.
pub(super) struct EndCheck {
    service: Arc<Service>,
    root: SessionIdentity,
    state: State,
}

enum State {
    /// Nothing has changed since the last check.
    Done,
    /// A check starts with the next poll.
    Due {
        has_waited: bool,
    },
    Running(BoxFuture<'static, Result<Option<End>>>),
}

impl EndCheck {
    /// Creates a check that starts with the first poll.
    pub(super) fn due(service: Arc<Service>, root: SessionIdentity) -> Self {
        Self { service, root, state: State::Due { has_waited: false } }
    }

    /// Creates a check that waits for a reason.
    pub(super) fn idle(service: Arc<Service>, root: SessionIdentity) -> Self {
        Self { service, root, state: State::Done }
    }

    /// Starts a check with the next poll. With `has_waited`, a check in progress continues.
    pub(super) fn start(&mut self, has_waited: bool) {
        if !has_waited || matches!(self.state, State::Done) {
            self.state = State::Due { has_waited };
        }
    }

    /// Returns the end if a check has found it. `next` is the position up to which (exclusive) the reader has seen the
    /// stream.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, next: u64) -> Poll<Result<End>> {
        loop {
            match &mut self.state {
                State::Done => return Poll::Pending,
                State::Due { has_waited } => {
                    let (service, root) = (Arc::clone(&self.service), self.root.clone());
                    self.state = State::Running(end_of(service, root, next, *has_waited).boxed());
                }
                State::Running(check) => {
                    let ended = ready!(check.poll_unpin(cx));
                    self.state = State::Done;
                    match ended.transpose() {
                        Some(ended) => return Poll::Ready(ended),
                        None => return Poll::Pending,
                    }
                }
            }
        }
    }
}

/// Returns the end of a root session's stream if a reader has seen everything up to `next` (exclusive) and no run is in
/// progress. With `has_waited`, the reader has received nothing for a while, so the last chunks were discarded and will
/// not come.
async fn end_of(
    service: Arc<Service>,
    root: SessionIdentity,
    next: u64,
    has_waited: bool,
) -> Result<Option<End>> {
    let session = &root.session;
    for is_repaired in [false, true] {
        let head = service.store.head(session).await?;
        let Some(head) = head.filter(|head| root.is_of(head)) else {
            return Ok(Some(End::DELETED));
        };
        let info = service.streams.info(session).await?;
        let has_all = next > info.last_seq || has_waited;
        let status = match StreamStatus::of(&head, &info) {
            StreamStatus::Paused => EndStatus::Paused,
            StreamStatus::Ended => EndStatus::Ended,
            StreamStatus::Failed => EndStatus::Failed,
            // The writer of the last run may have crashed before it showed the end. Reading the page repairs that.
            _ if head.summary.run.is_none() && !is_repaired => {
                service.executor.page(session).await?;
                continue;
            }
            _ => return Ok(None),
        };
        return Ok(has_all.then_some(End { status }));
    }
    Ok(None)
}
