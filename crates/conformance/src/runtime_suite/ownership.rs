//! Scenarios for ownership of runs: processes that are stopped and continued, and hooks that outlast a lease.

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
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::Value;

use super::support::{
    S, Word, all_crashed, asks, completes, end, fold, held, helper, killed_at, report, resume,
    resume_to_end, scripts, shout, start_run, teller, tool_results, word,
};
use super::{RuntimeHarness, World};

/// The time that the next owner waits before it reconciles a call in doubt.
const DOUBT: Duration = Duration::from_millis(200);

/// Returns a payment tool that must not run twice. Its reconciliation can find out that it was not executed.
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

/// Returns a tool that blocks its whole process until the sender is used or dropped.
fn stall(reached: &Gate, wakes: mpsc::Receiver<()>) -> Tool {
    let (reached, wakes) = (reached.clone(), Arc::new(Mutex::new(wakes)));
    reached.open();
    Tool::function("stall", "Stands still.", move |_: Word, _: ToolContext| {
        let (reached, wakes) = (reached.clone(), Arc::clone(&wakes));
        async move {
            reached.pass().await;
            // Blocks the thread, and with it all tasks of the process on it.
            let _ = wakes.lock().unwrap_or_else(PoisonError::into_inner).recv();
            Ok::<_, ToolError>("awake")
        }
    })
    .effect(EffectClass::AtMostOnce)
    .timeout(DOUBT)
}

/// A process is stopped for longer than its lease while its next call is queued, and another process executes that
/// call. When the first process continues, it does not start the queued call.
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
    let first = start_run(&*slow, &agent, "go").await;
    stands.reached().await;
    let quick = harness.boot(World::new(script())).await;
    let second = resume(&*quick, &agent).await.unwrap();
    completes(&second).await;
    wake.send(()).unwrap();
    let error = within(first.result()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Superseded);
    let payments = payments.lock().unwrap();
    assert_eq!(payments.len(), 1, "the payments were made by {payments:?}");
}

/// A prompt function blocks its process for longer than the lease, and another process makes the model call. When the
/// first process continues, it does not repeat the model call.
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
    let first = start_run(&*slow, &agent, "go").await;
    stands.reached().await;
    let quick = harness.boot(World::new(ScriptedLlm::new([Reply::text("quick")]))).await;
    let second = resume(&*quick, &agent).await.unwrap();
    completes(&second).await;
    wake.send(()).unwrap();
    let error = within(first.result()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Superseded);
    assert_eq!(slow_llm.calls(), 0, "the model call of the other process was made again");
}

/// Calls that wait for a slot when the run is aborted are never executed.
pub async fn an_abort_starts_no_queued_call(harness: &impl RuntimeHarness) {
    let (payments, gate) = (Arc::default(), Gate::new());
    let agent = teller().tool(held("held", &gate)).tool(pay(&payments)).tool_concurrency(1);
    let agent = agent.build().unwrap();
    let calls = Reply::calls([("held", word("a")), ("pay", word("b")), ("pay", word("c"))]);
    let executor = harness.boot(World::new(ScriptedLlm::new([calls]))).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    handle.abort(None).await.unwrap();
    gate.open();
    assert_eq!(end(&handle).await.status, RunStatus::Aborted);
    assert_eq!(*payments.lock().unwrap(), [0; 0]);
}

/// Hooks that wait at a gate in each hook that a run awaits.
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

/// The owner renews its lease while a hook runs. A caller that waits for the lease gets `already_running`, and each
/// hook is called once.
pub async fn a_hook_that_outlasts_the_lease_keeps_it(harness: &impl RuntimeHarness) {
    let slow = Slow::default();
    let helper = helper("helper").build().unwrap();
    let agent = teller().tool(shout()).sub_agent(&helper).hooks(slow.clone()).build().unwrap();
    let llm = scripts(
        [Reply::tool_call("shout", word("a")), asks(&["helper"]), Reply::text("done")],
        [report()],
    );
    let executor = harness.boot(World::new(llm.clone()).short_lease()).await;
    let handle = start_run(&*executor, &agent, "go").await;
    let elsewhere = harness.boot(World::new(ScriptedLlm::new([]))).await;
    for gate in [&slow.start, &slow.tool, &slow.sub_agent, &slow.complete] {
        within(gate.reached()).await;
        let refused = within(resume(&*elsewhere, &agent)).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::AlreadyRunning);
        gate.open();
    }
    completes(&handle).await;
    let arrivals = [&slow.start, &slow.tool, &slow.sub_agent, &slow.complete].map(Gate::arrived);
    assert_eq!(arrivals, [1; 4], "each hook is called once");
}

/// A process that crashes in a hook of a result leaves the result in the log: the tool does not run again,
/// and the hooks do.
pub async fn results_are_recorded_before_their_hooks_run(harness: &impl RuntimeHarness) {
    let (payments, slow) = (Arc::default(), Slow::default());
    slow.start.open();
    slow.complete.open();
    let agent = teller().tool(pay(&payments)).hooks(slow.clone()).build().unwrap();
    let script = || ScriptedLlm::new([Reply::tool_call("pay", word("a")), Reply::text("done")]);
    killed_at(harness, World::new(script()), &agent, &slow.tool).await;
    let step = fold(harness).await.open_step().cloned().unwrap();
    assert!(step.call(&"1.0".into()).unwrap().finish.is_some(), "{step:?}");
    let executor = harness.boot(World::new(script())).await;
    assert_eq!(resume_to_end(&*executor, &agent).await.status, RunStatus::Completed);
    assert_eq!((payments.lock().unwrap().len(), slow.tool.arrived()), (1, 2));
    assert_eq!(tool_results(harness, "pay").await, "tool pay \"paid\"\n");
}

/// A call is recorded as started when it gets a slot, not while it is queued. After a crash, an at-most-once call that
/// was only queued is executed.
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
        let calls = log.iter().filter_map(|recorded| match &recorded.event {
            Event::ToolStarted { call, attempt, .. } => Some(format!("{call} try {attempt}")),
            _ => None,
        });
        calls.collect::<Vec<_>>()
    };
    let executor = harness.boot(World::new(script())).await;
    start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    assert_eq!(started().await, ["1.0 try 1"]);
    all_crashed(harness).await;
    gate.open();
    let executor = harness.boot(World::new(script())).await;
    assert_eq!(resume_to_end(&*executor, &agent).await.status, RunStatus::Completed);
    assert_eq!(started().await, ["1.0 try 1", "1.1 try 2"]);
    assert_eq!(payments.lock().unwrap().len(), 1);
}

/// A run that takes over a session has a greater fencing token than the earlier run. External systems can use the token
/// to refuse effects of the earlier run.
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
    assert_eq!(resume_to_end(&*executor, &agent).await.status, RunStatus::Completed);
    let tokens = tokens.lock().unwrap();
    assert!(tokens.len() == 2 && tokens[0] < tokens[1], "{tokens:?}");
}
