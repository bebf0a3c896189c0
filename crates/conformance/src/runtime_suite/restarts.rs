//! Scenarios for restarts, where another process continues after a crash.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::hooks::{AgentHooks, HookContext, HookDecision, HookResult, ToolCallView};
use helix_agents_core::json::Json;
use helix_agents_core::llm::RetryPolicy;
use helix_agents_core::session::{RunStatus, Submission};
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{EffectClass, ReconcileOutcome, Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::json;

use super::support::{
    Word, all_crashed, check_log, check_stream, check_transcript, completes, end, killed_at,
    options, resume, resume_to_end, run, shout, start_run, submit, teller, until_shown, word,
};
use super::{RuntimeHarness, World};

type Trace = Arc<Mutex<Vec<(u32, String)>>>;

/// Returns a tool that records its attempt and key, and then waits at the gate.
fn traced(trace: &Trace, gate: &Gate) -> Tool {
    let (trace, gate) = (Arc::clone(trace), gate.clone());
    Tool::function("act", "Acts.", move |_: Word, cx: ToolContext| {
        trace.lock().unwrap().push((cx.attempt(), cx.idempotency_key()));
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok("acted")
        }
    })
    .timeout(Duration::from_secs(1))
}

fn act() -> Reply {
    Reply::tool_call("act", json!({"word": "x"}))
}

/// A process crashes after it has recorded the result of a tool. The next process does not run the tool again and
/// continues with the model call.
pub async fn a_restart_does_not_repeat_a_recorded_tool_call(harness: &impl RuntimeHarness) {
    let (trace, gate) = (Trace::default(), Gate::new());
    let agent = teller().tool(traced(&trace, &Gate::opened())).build().unwrap();
    let script = || ScriptedLlm::new([act(), Reply::text("done").at_gate(&gate)]);
    killed_at(harness, World::new(script()), &agent, &gate).await;
    let executor = harness.boot(World::new(script())).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    assert_eq!(trace.lock().unwrap().len(), 1, "the recorded call ran again");
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 act({"word":"x"})
          result 1.0 "acted"
        step 1 closed
        step 2 reply EndTurn in=10 out=5 "done"
        step 2 closed
        end completed "done"
    "#]],
    )
    .await;
}

/// A process crashes in a tool that may run again. The next process runs it as the second attempt, with the same
/// idempotency key.
pub async fn a_restart_in_a_tool_runs_it_again_under_the_same_key(harness: &impl RuntimeHarness) {
    let (trace, gate) = (Trace::default(), Gate::new());
    let agent = teller().tool(traced(&trace, &gate)).tool(shout()).build().unwrap();
    let word = json!({"word": "x"});
    let script = || {
        ScriptedLlm::new([
            Reply::calls([("shout", word.clone()), ("act", word.clone())]),
            Reply::text("done"),
        ])
    };
    killed_at(harness, World::new(script()), &agent, &gate).await;
    let executor = harness.boot(World::new(script())).await;
    resume_to_end(&*executor, &agent).await;
    let trace = trace.lock().unwrap().clone();
    assert_eq!(trace.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(trace[0].1, trace[1].1);
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant None shout({"word":"x"}) act({"word":"x"})
        tool shout "X"
        tool act "acted"
        assistant Some("done")
    "#]],
    )
    .await;
}

/// A hook that counts its calls, and writes the count into the arguments.
struct CountingHooks(AtomicUsize);

#[async_trait]
impl AgentHooks for CountingHooks {
    async fn before_tool(
        &self,
        _: &HookContext,
        _: ToolCallView<'_>,
    ) -> HookResult<HookDecision<Json>> {
        let calls = self.0.fetch_add(1, Ordering::Relaxed);
        Ok(HookDecision::Change(json!({"word": calls.to_string()}).into()))
    }
}

/// The idempotency key of a call stays the same, even if a hook changes the arguments of each attempt.
pub async fn a_key_does_not_follow_what_a_hook_changes(harness: &impl RuntimeHarness) {
    let (trace, gate) = (Trace::default(), Gate::new());
    let (seen, closed) = (Arc::clone(&trace), gate.clone());
    let act = Tool::function("act", "Acts.", move |_: Word, cx: ToolContext| {
        seen.lock().unwrap().push((cx.attempt(), cx.idempotency_key()));
        let gate = closed.clone();
        async move {
            if cx.attempt() == 1 {
                return Err(ToolError::new("not yet").retryable());
            }
            gate.pass().await;
            Ok("acted")
        }
    })
    .retry(RetryPolicy::default().base(Duration::from_millis(1)));
    let agent = teller().tool(act).hooks(CountingHooks(AtomicUsize::new(0))).build().unwrap();
    let script =
        || ScriptedLlm::new([Reply::tool_call("act", json!({"word": "x"})), Reply::text("done")]);
    killed_at(harness, World::new(script()), &agent, &gate).await;
    let executor = harness.boot(World::new(script())).await;
    resume_to_end(&*executor, &agent).await;
    let trace = trace.lock().unwrap().clone();
    assert_eq!(trace.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2, 2]);
    assert!(trace.iter().all(|(_, key)| *key == trace[0].1), "{trace:?}");
}

/// The idempotency key of an approved call is derived from the arguments that the approver has edited. Every attempt
/// has the same arguments and the same key.
pub async fn a_key_follows_what_an_approver_edits(harness: &impl RuntimeHarness) {
    let (seen, gate) = (Arc::new(Mutex::new(Vec::new())), Gate::new());
    let (trace, closed) = (Arc::clone(&seen), gate.clone());
    let act = Tool::function("act", "Acts.", move |input: Word, cx: ToolContext| {
        trace.lock().unwrap().push((cx.attempt(), input.word, cx.idempotency_key()));
        let gate = closed.clone();
        async move {
            if cx.attempt() == 1 {
                return Err(ToolError::new("not yet").retryable());
            }
            gate.pass().await;
            Ok("acted")
        }
    });
    let act = act.requires_approval().editable().effect(EffectClass::Idempotent);
    let act = act.retry(RetryPolicy::default().base(Duration::from_millis(1)));
    let agent = teller().tool(act).build().unwrap();
    let replies = || {
        let calls = Reply::calls([("act", word("same")), ("act", word("other"))]);
        ScriptedLlm::new([calls, Reply::text("done")])
    };
    let executor = harness.boot(World::new(replies())).await;
    run(&*executor, &agent, "go").await;
    for call in ["1.0", "1.1"] {
        let edited = Submission::approve_edited(call, &word("same")).unwrap();
        submit(&*executor, edited).await;
    }
    resume(&*executor, &agent).await.unwrap();
    gate.reached_by(2).await;
    all_crashed(harness).await;
    gate.open();
    let executor = harness.boot(World::new(replies())).await;
    resume_to_end(&*executor, &agent).await;
    let seen = seen.lock().unwrap().clone();
    let mut keys: Vec<_> = seen.iter().map(|(_, _, key)| key.clone()).collect();
    keys.sort_unstable();
    let tries: Vec<_> = keys.chunk_by(|one, next| one == next).map(<[_]>::len).collect();
    assert_eq!(tries, [3, 3], "{seen:?}");
    let digests: BTreeSet<_> = keys.iter().map(|key| key.rsplit('/').next().unwrap()).collect();
    assert_eq!(digests.len(), 1, "the key is made of the edited arguments: {keys:?}");
    assert!(seen.iter().all(|(_, argument, _)| argument == "same"), "{seen:?}");
}

async fn in_doubt<O>(harness: &impl RuntimeHarness, agent: &Agent<O>, gate: &Gate) -> RunStatus {
    let script = || ScriptedLlm::new([act(), Reply::text("done")]);
    killed_at(harness, World::new(script()), agent, gate).await;
    let executor = harness.boot(World::new(script())).await;
    resume_to_end(&*executor, agent).await.status
}

/// A process crashes in an at-most-once tool without reconciliation. The tool does not run again, and the model gets an
/// error that the outcome is unknown.
pub async fn an_at_most_once_tool_is_not_run_again(harness: &impl RuntimeHarness) {
    let (trace, gate) = (Trace::default(), Gate::new());
    let tool = traced(&trace, &gate).effect(EffectClass::AtMostOnce);
    let agent = teller().tool(tool).build().unwrap();
    assert_eq!(in_doubt(harness, &agent, &gate).await, RunStatus::Completed);
    assert_eq!(trace.lock().unwrap().len(), 1);
    check_transcript(harness, &expect![[r#"
        user "go"
        assistant None act({"word":"x"})
        tool act {"error":"the process stopped during this call, so it is unknown whether the call took effect; it was not run again"}
        assistant Some("done")
    "#]]).await;
}

/// A process crashes in an at-most-once tool with reconciliation. The tool does not run again, and the outcome that the
/// reconciliation finds is the result.
pub async fn an_at_most_once_tool_is_reconciled(harness: &impl RuntimeHarness) {
    let (trace, gate) = (Trace::default(), Gate::new());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let tool = traced(&trace, &gate).effect(EffectClass::AtMostOnce).reconcile(
        move |_, cx: ToolContext| {
            noted.lock().unwrap().push(cx.idempotency_key());
            async { ReconcileOutcome::Completed(json!("had acted")) }
        },
    );
    let agent = teller().tool(tool).build().unwrap();
    assert_eq!(in_doubt(harness, &agent, &gate).await, RunStatus::Completed);
    let trace = trace.lock().unwrap().clone();
    assert_eq!(trace.len(), 1);
    assert_eq!(*asked.lock().unwrap(), [trace[0].1.clone()]);
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant None act({"word":"x"})
        tool act "had acted"
        assistant Some("done")
    "#]],
    )
    .await;
}

/// A pending call whose tool no longer exists gets an error.
pub async fn a_tool_that_is_gone_after_a_restart_is_missing(harness: &impl RuntimeHarness) {
    let (trace, gate) = (Trace::default(), Gate::new());
    let agent = teller().tool(traced(&trace, &gate)).build().unwrap();
    let script = || ScriptedLlm::new([act(), Reply::text("done")]);
    killed_at(harness, World::new(script()), &agent, &gate).await;
    let agent = teller().tool(shout()).build().unwrap();
    let executor = harness.boot(World::new(script())).await;
    resume_to_end(&*executor, &agent).await;
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 act({"word":"x"})
          result 1.0 error tool_missing: there is no tool `act`; the tools are: shout
        step 1 closed
        step 2 reply EndTurn in=10 out=5 "done"
        step 2 closed
        end completed "done"
    "#]],
    )
    .await;
}

/// A process crashes in a model call, and the next process calls the model again. Its stream and the transcript contain
/// only the text of the new reply.
pub async fn a_restart_in_the_model_call_calls_the_model_again(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let gate = Gate::new();
    let held = ScriptedLlm::new([
        Reply::breaks_off(ErrorCode::ProviderStreamCut, "Good mo"),
        Reply::text("Good morning.").at_gate(&gate),
    ]);
    let executor = harness.boot(World::new(held)).await;
    let killed = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    until_shown(&killed, |kind| matches!(kind, ChunkKind::Checkpoint { .. })).await;
    all_crashed(harness).await;
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::text("Good evening.")]))).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    end(&handle).await;
    check_stream(
        &handle,
        &expect![[r#"
        text Good evening.
        checkpoint
        output "Good evening."
        run_ended completed
    "#]],
    )
    .await;
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant Some("Good evening.")
    "#]],
    )
    .await;
}

/// If several processes resume a crashed session concurrently, one of them starts a run. The others are refused.
pub async fn of_many_resumers_exactly_one_runs(harness: &impl RuntimeHarness) {
    let (trace, gate) = (Trace::default(), Gate::new());
    let agent = teller().tool(traced(&trace, &Gate::opened())).build().unwrap();
    let script = |gate| ScriptedLlm::new([act(), Reply::text("done").at_gate(gate)]);
    killed_at(harness, World::new(script(&gate)), &agent, &gate).await;
    // The run does not end before all others were refused.
    let refused = Gate::new();
    let mut executors: Vec<Arc<dyn AgentExecutor>> = Vec::new();
    for _ in 0..8 {
        executors.push(harness.boot(World::new(script(&refused))).await);
    }
    let resumed =
        futures_util::future::join_all(executors.iter().map(|one| resume(&**one, &agent))).await;
    let (won, lost): (Vec<_>, Vec<_>) = resumed.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 7));
    refused.open();
    for error in lost.into_iter().filter_map(Result::err) {
        let expected = [ErrorCode::AlreadyResumed, ErrorCode::AlreadyRunning];
        assert!(expected.contains(&error.code()), "{error}");
    }
    for handle in won.into_iter().filter_map(Result::ok) {
        completes(&handle).await;
    }
    assert_eq!(trace.lock().unwrap().len(), 1);
}

/// An executor that was shut down starts nothing. Its sessions stay, and another executor starts their next turn.
pub async fn after_a_shutdown_another_process_continues_the_session(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let script = || ScriptedLlm::new([Reply::text("one"), Reply::text("two")]);
    let first = harness.boot(World::new(script()).registered(&agent)).await;
    completes(&start_run(&*first, &agent, "go").await).await;
    within(first.shutdown()).await;
    within(first.shutdown()).await;
    let refused = first.execute(agent.erased(), "again".into(), options()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Closed);
    let refused = resume(&*first, &agent).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Closed);

    let second = harness.boot(World::new(script()).registered(&agent)).await;
    completes(&start_run(&*second, &agent, "again").await).await;
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant Some("one")
        user "again"
        assistant Some("two")
    "#]],
    )
    .await;
}
