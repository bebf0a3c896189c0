//! Children that are stopped with their parent, asked what it was asked, and heard by it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::Result;
use helix_agents_core::event::ChildStart;
use helix_agents_core::hooks::HookChain;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{
    CompletionNotice, Request, RequestKind, Session, SessionOverview, StopAction, is_benign_race,
    pass_down, standing,
};

use crate::context::RuntimeContext;
use crate::runtime::Runtime;
use crate::start;

/// How often a child is stopped that begins and ends runs meanwhile.
const MAX_TRIES: u32 = 16;

/// Stops a child; `for_good` also one that is done. `above` are the hooks of its parent and of those
/// above that.
pub(crate) fn stop<'a>(
    runtime: &'a Runtime,
    agent: AnyAgent,
    child: &'a SessionId,
    reason: Option<String>,
    for_good: bool,
    above: &'a HookChain,
) -> BoxFuture<'a, Result<()>> {
    async move {
        for _ in 0..MAX_TRIES {
            let (agent, reason) = (Arc::clone(&agent), reason.clone());
            let stopped = match standing(runtime.context().logs(), child).await?.stopping(for_good)
            {
                StopAction::Done => {
                    // Its owner may have died before it could show the end.
                    runtime.context().show_end(child).await;
                    return Ok(());
                }
                StopAction::Ask => runtime.ask(child, RequestKind::Abort, reason).await,
                StopAction::Abort => {
                    start::abort(runtime, agent, child, reason, for_good, above).await
                }
            };
            match stopped {
                // It has begun or ended a run meanwhile.
                Err(error) if is_benign_race(&error) => {}
                stopped => return stopped,
            }
        }
        Err(start::busy(child))
    }
    .boxed()
}

/// Tells those above and below a session what its last run came to. Those who heard it are not
/// disturbed by hearing it again.
pub(crate) async fn tell(
    runtime: &Runtime,
    agent: &AnyAgent,
    fold: &SessionOverview,
    hooks: &HookChain,
) {
    if fold.is_background() {
        notify(runtime.context(), fold).await;
    }
    if let Some((children, reason)) = fold.aborted_children() {
        stop_below(runtime, agent, &children, reason, hooks).await;
    }
}

/// Stops the children of a session that was aborted.
async fn stop_below(
    runtime: &Runtime,
    agent: &AnyAgent,
    children: &[Arc<ChildStart>],
    why: Option<String>,
    above: &HookChain,
) {
    for child in children {
        let Some(agent) = agent.agent_of_child(&child.agent) else { continue };
        let session = &child.session;
        let stopped = stop(runtime, Arc::clone(agent), session, why.clone(), false, above);
        if let Err(error) = stopped.await {
            tracing::warn!(%session, %error, "a child was not aborted");
        }
    }
}

/// Asks the children of open calls to stop where the session was asked to. Whoever asked did so too,
/// unless it died before, or they had not begun.
pub(crate) async fn interrupt_below(
    context: &RuntimeContext,
    session: &Session,
    request: &Request,
) {
    let children: Vec<_> = session.open_children().map(|child| child.session.clone()).collect();
    if !children.is_empty() {
        let asked = pass_down(context.outside(), &children, RequestKind::Interrupt, request).await;
        asked.iter().for_each(|session| context.wakeups.tell(session));
    }
}

/// Tells the parent of a companion that works beside it that a turn is over.
async fn notify(context: &RuntimeContext, fold: &SessionOverview) {
    let Some(notice) = CompletionNotice::of(fold) else { return };
    // The parent takes the message in between two steps, or looks for itself when it goes on.
    if let Err(error) = notice.tell(context.outside()).await {
        tracing::warn!(session = %fold.id(), %error, "the parent was not told");
    }
}
