//! Who may act for a run: owners that stand still and wake up, hooks that are slower than a lease.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::{Event, ToolOutcome};
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult, SubAgentView, ToolCallView};
use helix_agents_core::json::Json;
use helix_agents_core::session::{RunStatus, load_events};
use helix_agents_core::tool::{EffectClass, ReconcileOutcome, Tool, ToolContext, ToolError};
use serde_json::Value;

use super::support::{
    S, Word, all_dead, asks, begin, completes, end, fold, go_on, held, helper, killed_at, report,
    resume, scripts, shout, teller, told_by, word,
};
use super::{RuntimeHarness, World};
use crate::gate::{Gate, within};
use crate::scripted::{Reply, ScriptedLlm};

/// How long a successor waits before it asks what became of a call in doubt.
const DOUBT: Duration = Duration::from_millis(200);

/// A payment that must not be made twice. It can be found out that one was not made.
fn pay(payments: &Arc<Mutex<Vec<u64>>>) -> Tool {
    let payments = Arc::clone(payments);
    Tool::function("pay", "Pays.", move |_: Word, cx: ToolContext| {
        payments.lock().unwrap().push(cx.fencing_token());
        async { Ok::<_, ToolError>("paid") }
    })
    .effect(EffectClass::AtMostOnce)
    .timeout(DOUBT)
    .reconcile(|_, _: ToolContext| async { ReconcileOutcome::NotExecuted })
}

/// A tool that stops its whole process until the sender is used or gone.
fn stall(reached: &Gate, wakes: mpsc::Receiver<()>) -> Tool {
    let (reached, wakes) = (reached.clone(), Arc::new(Mutex::new(wakes)));
    reached.open();
    Tool::function("stall", "Stands still.", move |_: Word, _: ToolContext| {
        let (reached, wakes) = (reached.clone(), Arc::clone(&wakes));
        async move {
            reached.pass().await;
            // The thread, and with it all that the process would do on it.
            let _ = wakes.lock().unwrap_or_else(PoisonError::into_inner).recv();
            Ok::<_, ToolError>("awake")
        }
    })
    .effect(EffectClass::AtMostOnce)
    .timeout(DOUBT)
}

/// Its next call waits in a queue while the process stands still for longer than its lease, and another process
/// makes the call. When the first one wakes up, it does not start what waited.
pub async fn a_process_that_stood_still_starts_no_queued_call(harness: &impl RuntimeHarness) {
    let (payments, stands) = (Arc::default(), Gate::new());
    let (wake, wakes) = mpsc::channel();
    let agent =
        teller().tool(stall(&stands, wakes)).tool(pay(&payments)).tool_concurrency(1).build();
    let agent = agent.unwrap();
    let script = || {
        let calls = Reply::calls([("stall", word("a")), ("pay", word("b"))]);
        ScriptedLlm::new([calls, Reply::text("done")])
    };
    let slow = harness.boot(World::new(script()).short_lease()).await;
    let first = begin(&*slow, &agent, "go").await;
    stands.reached().await;
    let quick = harness.boot(World::new(script())).await;
    let second = resume(&*quick, &agent).await.unwrap();
    completes(&second).await;
    wake.send(()).unwrap();
    let error = within(first.result()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Superseded);
    let payments = payments.lock().unwrap();
    assert_eq!(payments.len(), 1, "it was paid by {payments:?}");
}

/// Its prompt, which is code of the agent's author, stops the process for longer than its lease, and another process
/// makes the model call. When the first one wakes up, it does not pay for the same call.
pub async fn a_process_that_stood_still_in_a_prompt_makes_no_model_call(
    harness: &impl RuntimeHarness,
) {
    let (wake, wakes) = mpsc::channel::<()>();
    let (stands, stall) = (Gate::opened(), Arc::new(Mutex::new(None)));
    let (reached, stalls) = (stands.clone(), Arc::clone(&stall));
    let agent = teller().system_prompt_of(move |_: Value| {
        let wakes: Option<mpsc::Receiver<()>> = stalls.lock().unwrap().take();
        if let Some(wakes) = wakes {
            reached.pass().now_or_never();
            let _ = wakes.recv();
        }
        "You tell.".to_owned()
    });
    let agent = agent.build().unwrap();
    *stall.lock().unwrap() = Some(wakes);
    let slow_llm = ScriptedLlm::new([Reply::text("slow")]);
    let slow = harness.boot(World::new(slow_llm.clone()).short_lease()).await;
    let first = begin(&*slow, &agent, "go").await;
    stands.reached().await;
    let quick = harness.boot(World::new(ScriptedLlm::new([Reply::text("quick")]))).await;
    let second = resume(&*quick, &agent).await.unwrap();
    completes(&second).await;
    wake.send(()).unwrap();
    let error = within(first.result()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Superseded);
    assert_eq!(slow_llm.calls(), 0, "the model call of the other process was made again");
}

/// What waits for a slot when the run is aborted never runs.
pub async fn an_abort_starts_no_queued_call(harness: &impl RuntimeHarness) {
    let (payments, gate) = (Arc::default(), Gate::new());
    let agent = teller().tool(held("held", &gate)).tool(pay(&payments)).tool_concurrency(1);
    let agent = agent.build().unwrap();
    let calls = Reply::calls([("held", word("a")), ("pay", word("b")), ("pay", word("c"))]);
    let executor = harness.boot(World::new(ScriptedLlm::new([calls]))).await;
    let handle = begin(&*executor, &agent, "go").await;
    gate.reached().await;
    handle.abort(None).await.unwrap();
    gate.open();
    assert_eq!(end(&handle).await.status, RunStatus::Aborted);
    assert_eq!(*payments.lock().unwrap(), [0; 0]);
}

/// Stands at a gate in each of the hooks that a run awaits.
#[derive(Debug, Clone, Default)]
struct Slow {
    start: Gate,
    sub_agent: Gate,
    tool: Gate,
    complete: Gate,
}

#[async_trait]
impl AgentHooks for Slow {
    async fn on_agent_start(&self, cx: &HookContext) -> HookResult {
        pass(cx, &self.start).await
    }

    async fn before_sub_agent(&self, cx: &HookContext, _: SubAgentView<'_>) -> HookResult {
        pass(cx, &self.sub_agent).await
    }

    async fn after_tool(
        &self,
        cx: &HookContext,
        _: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        pass(cx, &self.tool).await
    }

    async fn on_agent_complete(&self, cx: &HookContext, _: Option<&Json>) -> HookResult {
        pass(cx, &self.complete).await
    }
}

async fn pass(cx: &HookContext, gate: &Gate) -> HookResult {
    if *cx.agent == *"teller" {
        gate.pass().await;
    }
    Ok(())
}

/// Whoever waits for the lease meanwhile is told that it was renewed, and nothing is done twice.
pub async fn a_hook_that_outlasts_the_lease_keeps_it(harness: &impl RuntimeHarness) {
    let slow = Slow::default();
    let helper = helper("helper").build().unwrap();
    let agent = teller().tool(shout()).sub_agent(&helper).hooks(slow.clone()).build().unwrap();
    let llm = scripts(
        [Reply::tool_call("shout", word("a")), asks(&["helper"]), Reply::text("done")],
        [report()],
    );
    let executor = harness.boot(World::new(llm.clone()).short_lease()).await;
    let handle = begin(&*executor, &agent, "go").await;
    let elsewhere = harness.boot(World::new(ScriptedLlm::new([]))).await;
    for gate in [&slow.start, &slow.tool, &slow.sub_agent, &slow.complete] {
        within(gate.reached()).await;
        let refused = within(resume(&*elsewhere, &agent)).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::AlreadyRunning);
        gate.open();
    }
    completes(&handle).await;
    let told = [&slow.start, &slow.tool, &slow.sub_agent, &slow.complete].map(Gate::arrived);
    assert_eq!(told, [1; 4], "each hook is told once");
}

/// A process that dies in a hook of a result leaves the result behind: the tool does not run again, and hooks
/// are told again.
pub async fn results_are_on_record_before_hooks_are_told(harness: &impl RuntimeHarness) {
    let (payments, slow) = (Arc::default(), Slow::default());
    slow.start.open();
    slow.complete.open();
    let agent = teller().tool(pay(&payments)).hooks(slow.clone()).build().unwrap();
    let script = || ScriptedLlm::new([Reply::tool_call("pay", word("a")), Reply::text("done")]);
    killed_at(harness, World::new(script()), &agent, &slow.tool).await;
    let step = fold(harness).await.open_step().cloned().unwrap();
    assert!(step.call(&"1.0".into()).unwrap().finish.is_some(), "{step:?}");
    let executor = harness.boot(World::new(script())).await;
    assert_eq!(go_on(&*executor, &agent).await.status, RunStatus::Completed);
    assert_eq!((payments.lock().unwrap().len(), slow.tool.arrived()), (1, 2));
    assert_eq!(told_by(harness, "pay").await, "tool pay \"paid\"\n");
}

/// A call that waits in a queue is not taken for one that may have run.
pub async fn a_start_is_recorded_when_its_call_has_a_slot(harness: &impl RuntimeHarness) {
    let (payments, gate) = (Arc::default(), Gate::new());
    let agent = teller().tool(held("held", &gate).effect(EffectClass::AtMostOnce).timeout(DOUBT));
    let agent = agent.tool(pay(&payments)).tool_concurrency(1).build().unwrap();
    let script = || {
        let calls = Reply::calls([("held", word("a")), ("pay", word("b"))]);
        ScriptedLlm::new([calls, Reply::text("done")])
    };
    let started = async || {
        let log = load_events(&*harness.store(), &S.into(), 0).await.unwrap();
        let calls = log.iter().filter_map(|it| match &it.event {
            Event::ToolStarted { call, attempt, .. } => Some(format!("{call} try {attempt}")),
            _ => None,
        });
        calls.collect::<Vec<_>>()
    };
    let executor = harness.boot(World::new(script())).await;
    begin(&*executor, &agent, "go").await;
    gate.reached().await;
    assert_eq!(started().await, ["1.0 try 1"]);
    all_dead(harness).await;
    gate.open();
    let executor = harness.boot(World::new(script())).await;
    assert_eq!(go_on(&*executor, &agent).await.status, RunStatus::Completed);
    assert_eq!(started().await, ["1.0 try 1", "1.1 try 2"]);
    assert_eq!(payments.lock().unwrap().len(), 1);
}

/// What a tool does outside can be refused by the number of the run that it did it in.
pub async fn a_takeover_has_a_greater_fencing_token(harness: &impl RuntimeHarness) {
    let (tokens, gate) = (Arc::new(Mutex::new(Vec::new())), Gate::new());
    let act = {
        let (tokens, gate) = (Arc::clone(&tokens), gate.clone());
        Tool::function("act", "Acts.", move |_: Word, cx: ToolContext| {
            tokens.lock().unwrap().push(cx.fencing_token());
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok::<_, ToolError>("acted")
            }
        })
    };
    let agent = teller().tool(act).build().unwrap();
    let script = || ScriptedLlm::new([Reply::tool_call("act", word("a")), Reply::text("done")]);
    killed_at(harness, World::new(script()), &agent, &gate).await;
    let executor = harness.boot(World::new(script())).await;
    assert_eq!(go_on(&*executor, &agent).await.status, RunStatus::Completed);
    let tokens = tokens.lock().unwrap();
    assert!(tokens.len() == 2 && tokens[0] < tokens[1], "{tokens:?}");
}
