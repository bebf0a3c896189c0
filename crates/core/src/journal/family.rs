//! Sessions of a tree: the status of a child, its agent, and its completion notice.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::SessionReader;
use super::load::not_found;
use super::request::{MessageOrigin, RequestContext, head, queue_message};
use crate::agent::{AgentRegistry, AnyAgent, FactoryContext};
use crate::error::{Error, ErrorCode, Result};
use crate::event::{ChildNotice, ChildStart, CompanionRef};
use crate::fault;
use crate::id::{RequestId, SessionId};
use crate::machine::child_status::ChildStatus;
use crate::machine::session::{Session, SessionOverview};
use crate::message::UserMessage;
use crate::store::{Head, StateStore};
use crate::text::{MAX_QUOTED, excerpt};

/// Returns the current status of a child.
///
/// # Errors
/// Returns [`ErrorCode::SessionNotFound`], and the errors of [`SessionReader::find_overview`].
pub async fn child_status(logs: SessionReader<'_>, child: &SessionId) -> Result<ChildStatus> {
    Ok(overview_and_status(logs, child).await?.1)
}

/// Returns the overview and the current status of a child.
///
/// # Errors
/// Returns the errors of [`child_status`].
pub async fn overview_and_status(
    logs: SessionReader<'_>,
    child: &SessionId,
) -> Result<(SessionOverview, ChildStatus)> {
    let (head, fold) = logs.find_overview(child).await?.ok_or_else(|| not_found(child))?;
    let below = has_ready_child(logs, &fold).await?;
    let status = ChildStatus::of(&fold, head.is_leased(), below).ok_or_else(|| not_found(child))?;
    Ok((fold, status))
}

/// Returns a child with its history and its current status, for callers that need all of its runs.
///
/// # Errors
/// Returns the errors of [`child_status`].
pub async fn session_and_status(
    logs: SessionReader<'_>,
    child: &SessionId,
) -> Result<(Session, ChildStatus)> {
    let (head, fold) = logs.find(child).await?.ok_or_else(|| not_found(child))?;
    let below = has_ready_child(logs, &fold).await?;
    let status = ChildStatus::of(&fold, head.is_leased(), below).ok_or_else(|| not_found(child))?;
    Ok((fold, status))
}

/// Returns `true` if a child that a suspended session waits for can continue or has ended.
///
/// # Errors
/// Returns the errors of [`child_status`].
pub fn has_ready_child<'a>(
    logs: SessionReader<'a>,
    fold: &'a SessionOverview,
) -> BoxFuture<'a, Result<bool>> {
    async move {
        let waits = fold.last_run().is_some_and(|run| run.status.is_suspended());
        for child in fold.open_children().filter(|_| waits) {
            if !matches!(child_status(logs, &child.session).await?, ChildStatus::Waiting) {
                return Ok(true);
            }
        }
        Ok(false)
    }
    .boxed()
}

/// The agent of a session and the agents of its ancestors.
#[derive(Debug, Clone)]
pub struct Lineage {
    /// The session's agent.
    pub agent: AnyAgent,
    /// The agents of the session's ancestors, starting with the root.
    pub above: Vec<AnyAgent>,
}

/// Finds the agent of a session. A root's agent is resolved by name, a child's agent in the
/// definition of its parent's agent.
///
/// # Errors
/// Returns [`ErrorCode::AgentNotFound`], the error of an agent factory, and the errors of the
/// store.
pub async fn lineage(
    store: &dyn StateStore,
    registry: &AgentRegistry,
    session: &Head,
) -> Result<Lineage> {
    let mut top = session.clone();
    let mut below = Vec::new();
    while let Some(parent) = &top.created.parent {
        let parent = head(store, parent).await?;
        below.push(std::mem::replace(&mut top, parent));
    }
    let cx = FactoryContext { session: top.session.clone() };
    let mut agent = registry.resolve(&top.created.agent, &cx)?;
    let mut above = Vec::new();
    for child in below.iter().rev() {
        let found = agent.agent_of_child(&child.created.agent).cloned().ok_or_else(|| {
            Error::new(ErrorCode::AgentNotFound, "the parent's agent has no such sub-agent")
                .with_context("session", &child.session)
                .with_context("agent", &child.created.agent)
        })?;
        above.push(std::mem::replace(&mut agent, found));
    }
    Ok(Lineage { agent, above })
}

/// Returns `true` if the owner of the parent's run continues this session as well, so that a sweep
/// skips it.
#[must_use]
pub fn has_waiter(parent: &Head, fold: &SessionOverview) -> bool {
    parent.summary.run.is_some() && !fold.is_background()
}

/// Returns `true` if an error means that a run need not be started or stopped any more: another
/// process was first, or nothing that the session waits for has arrived.
#[must_use]
pub fn is_already_done(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::AlreadyRunning
            | ErrorCode::AlreadyResumed
            | ErrorCode::NothingToResume
            | ErrorCode::NothingToStop
            | ErrorCode::Superseded
            | ErrorCode::Suspended
    )
}

/// The notice that a background companion sends to its parent when its turn is over.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CompletionNotice {
    /// The parent session.
    pub parent: SessionId,
    /// The request id, with which the parent receives the notice only once.
    pub request: RequestId,
    /// The message for the parent's model.
    pub message: UserMessage,
    /// The notice for the parent's fold.
    pub from: ChildNotice,
}

impl CompletionNotice {
    /// Returns the notice of this session, if it is a background companion whose turn is over.
    #[must_use]
    pub fn of(fold: &SessionOverview) -> Option<Self> {
        let parent = fold.parent().filter(|_| fold.is_background())?;
        let name = &parent.companion.as_ref()?.name;
        let Some(ChildStatus::Ended(result, used)) = ChildStatus::of(fold, false, false) else {
            return None;
        };
        let mut content = format!("[{name}] {}", result.status.as_str());
        if let Some(output) = &result.output {
            content.push_str(&format!(": {}", output.text()));
        }
        if let Some(error) = &result.error {
            content.push_str(&format!(": {}", error.message));
        }
        Some(Self {
            parent: parent.session.clone(),
            request: RequestId::from(format!("{}/{}", fold.id(), fold.last_run()?.id)),
            message: UserMessage::hidden(content),
            from: ChildNotice { session: fold.id().clone(), used },
        })
    }

    /// Sends the notice to the parent, unless the parent has already received it. A message that is
    /// too large for one append is shortened, because a parent without the notice could not start
    /// another run.
    ///
    /// # Errors
    /// Returns the errors of [`queue_message`].
    pub async fn send(&self, request_context: RequestContext<'_>) -> Result<()> {
        fault::point("companion.before_notice");
        let Self { parent, request, message, from } = self;
        let origin = MessageOrigin::Companion(from);
        match queue_message(request_context, parent, request, message, origin).await {
            Err(error) if error.code() == ErrorCode::TooLarge => {
                let message = shortened(message);
                queue_message(request_context, parent, request, &message, origin).await
            }
            outcome => outcome,
        }
    }
}

fn shortened(message: &UserMessage) -> UserMessage {
    let (beginning, bytes) = (excerpt(&message.content, MAX_QUOTED), message.content.len());
    let content = format!("{beginning} (shortened; the message has {bytes} bytes)");
    UserMessage { hidden: message.hidden, ..UserMessage::new(content) }
}

/// Sends the outstanding notices of background companions that have ended without notifying the
/// session.
///
/// # Errors
/// Returns the errors of [`SessionReader::overview`] and [`queue_message`].
pub async fn deliver_missed_notices(
    request_context: RequestContext<'_>,
    fold: &SessionOverview,
) -> Result<()> {
    for (_, record) in fold.companions() {
        let ChildStart { session, companion, .. } = &*record.start;
        if companion.as_ref().is_some_and(CompanionRef::is_background) {
            let child = request_context.logs().overview(session).await?;
            if let Some(notice) = CompletionNotice::of(&child) {
                notice.send(request_context).await?;
            }
        }
    }
    Ok(())
}
