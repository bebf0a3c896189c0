//! Sessions that belong together: how a child stands, whose agent it is, and what it says of itself.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::load::not_found;
use super::request::{Outside, head, queue_message};
use super::{RunStatus, Session, SessionOverview, SessionReader};
use crate::agent::{AgentRegistry, AnyAgent, FactoryContext};
use crate::error::{Error, ErrorCode, Result};
use crate::event::{ChildNotice, ChildStart, CompanionRef};
use crate::executor::AgentResult;
use crate::fault;
use crate::id::{RequestId, SessionId};
use crate::message::UserMessage;
use crate::store::{Head, StateStore};
use crate::text::{MAX_QUOTED, excerpt};
use crate::usage::UsageRollup;

/// How a child stands.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildStatus {
    /// Its turn is over.
    Ended(Box<AgentResult>, Arc<UsageRollup>),
    /// Somebody carries it out.
    Live,
    /// It stopped without ending, or what it waited for has come.
    Ready,
    /// It was asked to stop.
    Interrupted,
    /// It waits for people.
    Waits,
}

/// What has to be done to stop a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopAction {
    /// Nothing.
    Done,
    /// To ask whoever carries it out.
    Ask,
    /// To end it as aborted; nobody carries it out.
    Abort,
}

impl ChildStatus {
    /// How the session of this fold stands. `alive` says whether its run is leased, `news_below`
    /// whether a child that it waits for can go on, or has ended. None without a run.
    #[must_use]
    pub fn of(fold: &SessionOverview, alive: bool, news_below: bool) -> Option<Self> {
        let run = fold.last_run()?;
        Some(match run.status {
            RunStatus::Running if alive => Self::Live,
            RunStatus::Running | RunStatus::Superseded => Self::Ready,
            RunStatus::Interrupted => Self::Interrupted,
            status if status.is_suspended() => {
                if fold.has_news() || news_below {
                    Self::Ready
                } else {
                    Self::Waits
                }
            }
            _ => Self::Ended(Box::new(AgentResult::of(run)), Arc::new(fold.tree_usage())),
        })
    }

    /// Whether somebody can go on with it.
    #[must_use]
    pub fn can_go_on(&self) -> bool {
        matches!(self, Self::Ready | Self::Interrupted)
    }

    /// What has to be done to stop it; `for_good` also if it is done, so that nobody speaks to it any
    /// more.
    #[must_use]
    pub fn stopping(&self, for_good: bool) -> StopAction {
        match self {
            Self::Ended(result, _) if !for_good || result.status == RunStatus::Aborted => {
                StopAction::Done
            }
            Self::Live => StopAction::Ask,
            _ => StopAction::Abort,
        }
    }
}

/// How a child stands now.
///
/// # Errors
/// [`ErrorCode::SessionNotFound`], and those of [`SessionReader::look_at_overview`].
pub async fn standing(logs: SessionReader<'_>, child: &SessionId) -> Result<ChildStatus> {
    Ok(overview_and_standing(logs, child).await?.1)
}

/// A child as its log tells it, and how it stands now.
///
/// # Errors
/// As [`standing`].
pub async fn overview_and_standing(
    logs: SessionReader<'_>,
    child: &SessionId,
) -> Result<(SessionOverview, ChildStatus)> {
    let (head, fold) = logs.look_at_overview(child).await?.ok_or_else(|| not_found(child))?;
    let below = news_below(logs, &fold).await?;
    let standing =
        ChildStatus::of(&fold, head.is_leased(), below).ok_or_else(|| not_found(child))?;
    Ok((fold, standing))
}

/// A child with its history, and how it stands now: for what has to know each of its runs.
///
/// # Errors
/// As [`standing`].
pub async fn fold_and_standing(
    logs: SessionReader<'_>,
    child: &SessionId,
) -> Result<(Session, ChildStatus)> {
    let (head, fold) = logs.look(child).await?.ok_or_else(|| not_found(child))?;
    let below = news_below(logs, &fold).await?;
    let standing =
        ChildStatus::of(&fold, head.is_leased(), below).ok_or_else(|| not_found(child))?;
    Ok((fold, standing))
}

/// Whether a child that a suspended session waits for can go on, or has ended.
///
/// # Errors
/// As [`standing`].
pub fn news_below<'a>(
    logs: SessionReader<'a>,
    fold: &'a SessionOverview,
) -> BoxFuture<'a, Result<bool>> {
    async move {
        let waits = fold.last_run().is_some_and(|run| run.status.is_suspended());
        for child in fold.open_children().filter(|_| waits) {
            if !matches!(standing(logs, &child.session).await?, ChildStatus::Waits) {
                return Ok(true);
            }
        }
        Ok(false)
    }
    .boxed()
}

/// The agent of a session, and those of the sessions above it, the root's first.
#[derive(Debug, Clone)]
pub struct Lineage {
    /// The session's.
    pub agent: AnyAgent,
    /// Those of the sessions above it.
    pub above: Vec<AnyAgent>,
}

/// Finds the agent of a session: a root's by its name, a child's in what its parent's definition
/// says.
///
/// # Errors
/// [`ErrorCode::AgentNotFound`], that of a factory, and the store's.
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

/// Whether whoever carries out the parent goes on with this session as well, so that a sweep leaves it
/// to them.
#[must_use]
pub fn has_waiter(parent: &Head, fold: &SessionOverview) -> bool {
    parent.summary.run.is_some() && !fold.is_background()
}

/// Whether a run was not begun because there is nothing to do for it: somebody else was first, or
/// nothing has come that the session waits for.
#[must_use]
pub fn is_benign_race(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::AlreadyRunning
            | ErrorCode::AlreadyResumed
            | ErrorCode::NothingToResume
            | ErrorCode::Superseded
            | ErrorCode::Suspended
    )
}

/// What a companion that works beside its parent tells it when its turn is over.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionNotice {
    /// The parent.
    pub parent: SessionId,
    /// Under which the parent is told once.
    pub request: RequestId,
    /// For the parent's model.
    pub message: UserMessage,
    /// For its fold.
    pub from: ChildNotice,
}

impl CompletionNotice {
    /// What this session has to tell, if it has.
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
            message: UserMessage { content, hidden: true },
            from: ChildNotice { session: fold.id().clone(), used },
        })
    }

    /// Tells the parent, unless it knows. Of a message that no append carries it is told the beginning:
    /// a parent that could not be told could not begin another run.
    ///
    /// # Errors
    /// As [`queue_message`].
    pub async fn tell(&self, outside: Outside<'_>) -> Result<()> {
        fault::point("companion.before_notice");
        let Self { parent, request, message, from } = self;
        match queue_message(outside, parent, request, message, Some(from)).await {
            Err(error) if error.code() == ErrorCode::TooLarge => {
                let message = shortened(message);
                queue_message(outside, parent, request, &message, Some(from)).await
            }
            told => told,
        }
    }
}

fn shortened(message: &UserMessage) -> UserMessage {
    let (beginning, bytes) = (excerpt(&message.content, MAX_QUOTED), message.content.len());
    let content = format!("{beginning} (shortened; the message has {bytes} bytes)");
    UserMessage { content, hidden: message.hidden }
}

/// Looks whether companions that work beside the session have ended and could not tell it.
///
/// # Errors
/// As [`SessionReader::overview`] and [`queue_message`].
pub async fn poll_children(outside: Outside<'_>, fold: &SessionOverview) -> Result<()> {
    for (_, record) in fold.companions() {
        let ChildStart { session, companion, .. } = &*record.start;
        if companion.as_ref().is_some_and(CompanionRef::is_background) {
            let child = outside.logs().overview(session).await?;
            if let Some(notice) = CompletionNotice::of(&child) {
                notice.tell(outside).await?;
            }
        }
    }
    Ok(())
}
