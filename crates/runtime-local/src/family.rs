//! Sessions that belong together: whose agent a child is, how children stand, and what becomes of
//! them when their parent is aborted.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use helix_agents_core::agent::{AnyAgent, FactoryContext};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::event::ChildStart;
use helix_agents_core::executor::AgentResult;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RequestKind, RunStatus, Session, load};
use helix_agents_core::store::Head;
use helix_agents_core::usage::UsageRollup;

use crate::hooks::Hooks;
use crate::parts::Parts;
use crate::runtime::LocalRuntime;
use crate::start;

/// How a child stands.
pub(crate) enum Standing {
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

/// How a child stands now.
pub(crate) fn standing<'a>(
    parts: &'a Parts,
    child: &'a SessionId,
) -> BoxFuture<'a, Result<Standing>> {
    async move {
        let (head, fold) = at_one_moment(parts, child).await?;
        let run = fold.last_run().ok_or_else(|| not_found(child))?;
        Ok(match run.status {
            RunStatus::Running if head.is_leased() => Standing::Live,
            RunStatus::Running | RunStatus::Superseded => Standing::Ready,
            RunStatus::Interrupted => Standing::Interrupted,
            status if status.is_suspended() => {
                let news = fold.has_news() || news_below(parts, &fold).await?;
                if news { Standing::Ready } else { Standing::Waits }
            }
            _ => Standing::Ended(Box::new(AgentResult::of(run)), Arc::new(fold.tree_usage())),
        })
    }
    .boxed()
}

/// A head and the fold of the same position: of two moments, a run that has just ended would be
/// taken for one whose owner is gone.
async fn at_one_moment(parts: &Parts, session: &SessionId) -> Result<(Head, Session)> {
    loop {
        let head = parts.store.head(session).await?.ok_or_else(|| not_found(session))?;
        let mut fold = load(&*parts.store, session).await?;
        if head.position == *fold.position() {
            fold.observe(head.read_at);
            return Ok((head, fold));
        }
    }
}

/// Whether a child that the session waits for can go on, or has ended.
pub(crate) async fn news_below(parts: &Parts, fold: &Session) -> Result<bool> {
    for child in fold.open_children() {
        if !matches!(standing(parts, &child.session).await?, Standing::Waits) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The agent of a session, and the hooks of the sessions above it. A child's agent is what its
/// parent's definition says.
pub(crate) fn agent_of<'a>(
    parts: &'a Parts,
    head: &'a Head,
) -> BoxFuture<'a, Result<(AnyAgent, Hooks)>> {
    async move {
        let name = &head.created.agent;
        let Some(parent) = &head.created.parent else {
            let cx = FactoryContext { session: head.session.clone() };
            return Ok((parts.registry.resolve(name, &cx)?, Hooks::none()));
        };
        let parent = parts.store.head(parent).await?.ok_or_else(|| not_found(parent))?;
        let (agent, above) = agent_of(parts, &parent).await?;
        let child = agent.agent_of_child(name).ok_or_else(|| {
            Error::new(ErrorCode::AgentNotFound, "the parent's agent has no such sub-agent")
                .with_context("session", &head.session)
                .with_context("agent", name)
        })?;
        Ok((Arc::clone(child), Hooks::new(&above, &agent, &[])))
    }
    .boxed()
}

/// Ends a session that has no live run as aborted, and its open children.
pub(crate) fn abort<'a>(
    runtime: &'a LocalRuntime,
    agent: AnyAgent,
    session: &'a SessionId,
    reason: Option<String>,
) -> BoxFuture<'a, Result<()>> {
    async move {
        let fold = load(&*runtime.parts().store, session).await?;
        let stay = fold.companions().map(|(_, record)| &record.start);
        let children: Vec<_> = fold.open_children().chain(stay).cloned().collect();
        start::abort(runtime, Arc::clone(&agent), session, reason.clone(), false).await?;
        abort_below(runtime, &agent, &children, reason).await;
        Ok(())
    }
    .boxed()
}

fn not_found(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionNotFound, "there is no session of this id")
        .with_context("session", session)
}

/// Ends children as aborted that are not done.
pub(crate) async fn abort_below(
    runtime: &LocalRuntime,
    agent: &AnyAgent,
    children: &[Arc<ChildStart>],
    reason: Option<String>,
) {
    for child in children {
        let Some(of_child) = agent.agent_of_child(&child.agent) else { continue };
        let (agent, session) = (Arc::clone(of_child), &child.session);
        let aborted = match standing(runtime.parts(), session).await {
            Ok(Standing::Ended(..)) => Ok(()),
            Ok(Standing::Live) => runtime.ask(session, RequestKind::Abort, reason.clone()).await,
            Ok(_) => abort(runtime, agent, session, reason.clone()).await,
            Err(error) => Err(error),
        };
        match aborted {
            Ok(()) => {}
            Err(error) if error.code() == ErrorCode::NothingToResume => {}
            Err(error) => tracing::warn!(%session, %error, "a child was not aborted"),
        }
    }
}
