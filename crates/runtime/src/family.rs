//! Propagation between parents and children: aborts and interrupts to children, completion notices to parents.

use std::convert::identity;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::Result;
use helix_agents_core::event::ChildStart;
use helix_agents_core::executor::StopOptions;
use helix_agents_core::id::SessionId;
use helix_agents_core::panics::{Panicked, caught_async};
use helix_agents_core::session::{
    CompletionNotice, MAX_CONFLICTS, Session, SessionOverview, StopAction, StopKind, StopRequest,
    child_status, is_already_done, pass_down, too_many_conflicts,
};

use crate::context::RuntimeContext;
use crate::hook_chain::HookChain;
use crate::runtime::Runtime;
use crate::start;

/// Stops a child. With `permanently`, a completed child is aborted, too, so that it accepts no further messages. `above`
/// contains the hooks of the child's ancestors.
pub(crate) fn stop<'a>(
    runtime: &'a Runtime,
    agent: AnyAgent,
    child: &'a SessionId,
    reason: Option<String>,
    permanently: bool,
    above: &'a HookChain,
) -> BoxFuture<'a, Result<()>> {
    async move {
        for _ in 0..MAX_CONFLICTS {
            let agent = Arc::clone(&agent);
            let mut options = StopOptions::default();
            options.reason.clone_from(&reason);
            let status = child_status(runtime.context().logs(), child).await?;
            let stopped = match status.stop_action(permanently) {
                StopAction::None => {
                    // The owner may have crashed before it wrote the end to the stream.
                    runtime.context().show_end(child).await;
                    return Ok(());
                }
                StopAction::Request => {
                    runtime.append_request(child, StopKind::Abort, &options).await
                }
                StopAction::Abort => {
                    start::abort(runtime, agent, child, &options, permanently, above).await
                }
            };
            match stopped {
                // The child has started or ended a run concurrently.
                Err(error) if is_already_done(&error) => {}
                stopped => return stopped,
            }
        }
        Err(too_many_conflicts(child))
    }
    .boxed()
}

/// Notifies the parent if the session is a background companion, and stops the children if the last run was aborted.
/// Repeating this is harmless.
pub(crate) async fn propagate_end(
    runtime: &Runtime,
    agent: &AnyAgent,
    fold: &SessionOverview,
    hooks: &HookChain,
) {
    if fold.is_background() {
        notify(runtime.context(), fold).await;
    }
    if let Some((children, reason)) = fold.children_to_abort() {
        abort_adapter(agent, fold, reason.as_deref()).await;
        stop_below(runtime, agent, &children, reason, hooks).await;
    }
}

/// Reports the abort of a session to the agent's own model adapter.
async fn abort_adapter(agent: &AnyAgent, fold: &SessionOverview, reason: Option<&str>) {
    let Some(adapter) = agent.adapter() else { return };
    let (session, created_at) = (fold.id(), fold.created_at());
    let aborted = caught_async("the model adapter", || adapter.abort(session, created_at, reason));
    let aborted = aborted.await.map_err(Panicked::into_error).and_then(identity);
    if let Err(error) = aborted {
        tracing::warn!(%session, %error, "the model adapter could not stop the work of the session");
    }
}

/// Stops the children of an aborted session.
async fn stop_below(
    runtime: &Runtime,
    agent: &AnyAgent,
    children: &[Arc<ChildStart>],
    reason: Option<String>,
    above: &HookChain,
) {
    for child in children {
        let Some(agent) = agent.agent_of_child(&child.agent) else { continue };
        let session = &child.session;
        let stopped = stop(runtime, Arc::clone(agent), session, reason.clone(), false, above);
        if let Err(error) = stopped.await {
            tracing::warn!(%session, %error, "a child was not aborted");
        }
    }
}

/// Passes an interrupt request on to the children of open calls. The process that requested the interrupt did this
/// too, unless it crashed before or the children did not exist yet.
pub(crate) async fn interrupt_below(
    context: &RuntimeContext,
    session: &Session,
    request: &StopRequest,
) {
    let children: Vec<_> = session.open_children().map(|child| child.session.clone()).collect();
    if !children.is_empty() {
        let sessions =
            pass_down(context.request_context(), &children, StopKind::Interrupt, request).await;
        sessions.iter().for_each(|session| context.wakeups.notify(session));
    }
}

/// Notifies the parent of a background companion that a turn has ended.
async fn notify(context: &RuntimeContext, fold: &SessionOverview) {
    let Some(notice) = CompletionNotice::of(fold) else { return };
    // The parent reads the message between two steps. If it cannot be sent, the parent checks its companions when it
    // resumes, so the error is only logged.
    if let Err(error) = notice.send(context.request_context()).await {
        tracing::warn!(session = %fold.id(), %error, "the parent was not notified");
    }
}
