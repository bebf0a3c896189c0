//! Scenarios for waiting sessions, and for events at critical moments.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use futures_util::StreamExt as _;
use helix_agents_core::agent::{Agent, CompanionMode};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{RunStatus, SessionPage, Submission};
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::json;

use super::support::{
    S, Word, all_crashed, asks, check_transcript, child, completes, fold, fold_of, helper,
    killed_at, report, resume, run, scripts, start_run, stored_status, submit, teller,
    transcript_text, until, word,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore, LIST};
use crate::normalise;

type Trace = Arc<Mutex<Vec<String>>>;

/// Returns a tool that needs an approval, records its execution, and then waits at the gate.
fn pay(trace: &Trace, gate: &Gate) -> Tool {
    let (trace, gate) = (Arc::clone(trace), gate.clone());
    Tool::function("pay", "Pays.", move |input: Word, _: ToolContext| {
        trace.lock().unwrap().push(input.word.clone());
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>(format!("paid {}", input.word))
        }
    })
    .requires_approval()
}

fn ask() -> Tool {
    Tool::client::<Word>("ask", "Asks a person.")
}

fn answer(call: &str) -> Submission {
    Submission::result(call, &word("blue")).unwrap()
}

/// If a message arrives just before the end of a run is recorded, the same run answers it.
pub async fn a_message_that_lands_while_the_run_ends_is_answered(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let store =
        FaultStore::new(harness.store()).with_fault("run_ended", Fault::HoldBefore(gate.clone()));
    let llm = ScriptedLlm::new([Reply::text("Done."), Reply::text("That too.")]);
    let executor = harness.boot(World::new(llm).with_store(store)).await;
    let agent = teller().build().unwrap();
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    let elsewhere = harness.boot(World::new(ScriptedLlm::new([]))).await;
    elsewhere.send_message(&S.into(), UserMessage::new("one more thing")).await.unwrap();
    gate.open();
    completes(&handle).await;
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant Some("Done.")
            user "one more thing"
            assistant Some("That too.")
        "#]],
    )
    .await;
}

/// If an interrupt arrives just before the end of a run is recorded, the run completes, because its work is done.
pub async fn an_interrupt_that_lands_while_the_run_ends_is_void(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let store =
        FaultStore::new(harness.store()).with_fault("run_ended", Fault::HoldBefore(gate.clone()));
    let executor =
        harness.boot(World::new(ScriptedLlm::new([Reply::text("Done.")])).with_store(store)).await;
    let agent = teller().build().unwrap();
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    let elsewhere = harness.boot(World::new(ScriptedLlm::new([]))).await;
    elsewhere.interrupt(&S.into(), None).await.unwrap();
    gate.open();
    completes(&handle).await;
    assert_eq!(resume(&*executor, &agent).await.unwrap_err().code(), ErrorCode::NothingToResume);
}

/// If an answer arrives just before a suspension is recorded, the run processes the answer at once and completes.
pub async fn an_answer_that_lands_while_the_run_suspends_is_taken_at_once(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let calls = Reply::calls([("ask", word("a")), ("ask", word("b"))]);
    let script = || ScriptedLlm::new([calls.clone(), Reply::text("Done.")]);
    let executor = harness.boot(World::new(script())).await;
    let agent = teller().tool(ask()).build().unwrap();
    run(&*executor, &agent, "go").await;
    submit(&*executor, answer("1.0")).await;
    let store =
        FaultStore::new(harness.store()).with_fault("suspended", Fault::HoldBefore(gate.clone()));
    let other = harness.boot(World::new(script()).with_store(store)).await;
    let handle = resume(&*other, &agent).await.unwrap();
    gate.reached().await;
    submit(&*executor, answer("1.1")).await;
    gate.open();
    completes(&handle).await;
}

/// Two processes that resume automatically accept the two answers of a session concurrently. The session completes, and
/// its approved call is executed once.
pub async fn one_of_two_automatic_resumers_runs(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = teller().tool(pay(&trace, &Gate::opened())).tool(ask()).build().unwrap();
    let calls = Reply::calls([("pay", word("rent")), ("ask", word("b"))]);
    let world = || {
        let script = ScriptedLlm::new([calls.clone(), Reply::text("Done.")]);
        World::new(script).registered(&agent).auto_resuming()
    };
    let (one, two) = (harness.boot(world()).await, harness.boot(world()).await);
    run(&*one, &agent, "go").await;
    let (first, second) =
        tokio::join!(submit(&*one, Submission::approve("1.0")), submit(&*two, answer("1.1")));
    assert_eq!((first, second), ((), ()));
    until(async || stored_status(harness, &S.into()).await == RunStatus::Completed).await;
    assert_eq!(*trace.lock().unwrap(), ["rent"], "it was paid once");
}

/// A sweep resumes a session after the deadline of its pending call has passed, and not earlier. A late answer is
/// refused.
pub async fn a_sweep_resumes_a_session_after_the_deadline_and_not_before(
    harness: &impl RuntimeHarness,
) {
    let agent = teller().tool(ask().deadline(Duration::from_millis(20))).build().unwrap();
    let script = ScriptedLlm::new([Reply::tool_call("ask", word("a")), Reply::text("Nobody.")]);
    let executor = harness.boot(World::new(script).registered(&agent)).await;
    let result = run(&*executor, &agent, "go").await;
    let deadline = result.suspended.unwrap().deadline().unwrap();
    let swept = async {
        loop {
            let swept = executor.sweep().await.unwrap();
            let now = harness.store().head(&S.into()).await.unwrap().unwrap().read_at;
            if let Some(handle) = swept.into_iter().next() {
                assert!(now > deadline, "swept by {now}, which is before {deadline}");
                return handle;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    completes(&within(swept).await).await;
    assert!(executor.sweep().await.unwrap().is_empty());
    let late = executor.submit_tool_result(&S.into(), answer("1.0")).await;
    assert_eq!(late.unwrap_err().code(), ErrorCode::AnswerExpired);
}

/// A sweep and a caller resume an answered session concurrently, and exactly one of them starts a run. Before the
/// answer, a sweep resumes nothing.
pub async fn either_the_sweeper_or_the_caller_resumes(harness: &impl RuntimeHarness) {
    let agent = teller().tool(ask()).build().unwrap();
    let script = || ScriptedLlm::new([Reply::tool_call("ask", word("a")), Reply::text("Done.")]);
    let executor = harness.boot(World::new(script()).registered(&agent)).await;
    run(&*executor, &agent, "go").await;
    assert!(executor.sweep().await.unwrap().is_empty(), "there is nothing to continue");
    submit(&*executor, answer("1.0")).await;
    let other = harness.boot(World::new(script()).registered(&agent)).await;
    let (swept, resumed) = tokio::join!(other.sweep(), resume(&*executor, &agent));
    let swept = swept.unwrap();
    match (swept.first(), &resumed) {
        (Some(handle), Err(error)) => {
            let expected =
                [ErrorCode::AlreadyResumed, ErrorCode::AlreadyRunning, ErrorCode::NothingToResume];
            assert!(expected.contains(&error.code()), "{error}");
            drop(completes(handle).await);
        }
        (None, Ok(handle)) => drop(completes(handle).await),
        both => panic!("{both:?}"),
    }
    assert_eq!(fold(harness).await.runs().count(), 2);
}

/// An approved call whose process crashed is not executed again. The call may have acted, and the approval was for one
/// execution.
pub async fn an_approved_call_that_was_killed_is_not_run_again(harness: &impl RuntimeHarness) {
    let (trace, gate) = (Trace::default(), Gate::new());
    let tool = |gate: &Gate| pay(&trace, gate).timeout(Duration::from_secs(1));
    let agent = |gate: &Gate| -> Agent { teller().tool(tool(gate)).build().unwrap() };
    let script = || ScriptedLlm::new([Reply::tool_call("pay", word("rent")), Reply::text("Done.")]);
    let executor = harness.boot(World::new(script())).await;
    run(&*executor, &agent(&gate), "go").await;
    submit(&*executor, Submission::approve("1.0")).await;
    resume(&*executor, &agent(&gate)).await.unwrap();
    gate.reached().await;
    all_crashed(harness).await;
    let executor = harness.boot(World::new(script())).await;
    let handle = resume(&*executor, &agent(&Gate::opened())).await.unwrap();
    completes(&handle).await;
    assert_eq!(*trace.lock().unwrap(), ["rent"]);
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant None pay({"word":"rent"})
            tool pay {"error":"the process stopped during this call, so it is unknown whether the call took effect; it was not run again"}
            assistant Some("Done.")
        "#]],
    )
    .await;
}

/// A parent crashes after its child has recorded its end and before the parent has recorded the result. The next
/// process records the result and does not run the child again.
pub async fn a_child_that_finished_while_its_parent_was_down_is_reported(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let world = || World::new(scripts([asks(&["helper"]), Reply::text("So.")], [report()]));
    let store = FaultStore::new(harness.store())
        .with_fault(r#""child":{"#, Fault::HoldBefore(gate.clone()));
    let agent = teller().sub_agent(&helper("helper").build().unwrap()).build().unwrap();
    killed_at(harness, world().with_store(store), &agent, &gate).await;
    assert_eq!(stored_status(harness, &child("1.0")).await, RunStatus::Completed);
    let executor = harness.boot(world()).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    let child = fold_of(harness, &child("1.0")).await;
    assert_eq!(child.runs().count(), 1, "the child is not run again");
}

/// A process crashes after a companion has recorded its end and before the parent got the notice. The next turn of the
/// parent reports the completion once.
pub async fn a_companion_that_crashed_after_its_end_is_still_reported(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let spawn = json!({"agent": "helper", "message": "find out", "name": "rex"});
    let spawn = Reply::tool_call("companion__spawnAgent", spawn);
    let teller_says = [spawn, Reply::text("Bye."), Reply::text("Ah.")];
    let world = || World::new(scripts(teller_says.clone(), [report()]));
    let store = FaultStore::new(harness.store())
        .with_fault("message_queued", Fault::HoldBefore(gate.clone()));
    let helper = helper("helper").build().unwrap();
    let agent = teller().companion(&helper, CompanionMode::NonBlocking).build().unwrap();
    let executor = harness.boot(world().with_store(store)).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    gate.reached().await;
    all_crashed(harness).await;
    assert!(fold(harness).await.queued_messages().is_empty());
    let executor = harness.boot(world()).await;
    completes(&start_run(&*executor, &agent, "And?").await).await;
    let transcript = transcript_text(harness).await;
    assert_eq!(transcript.matches("[rex] completed").count(), 1, "{transcript}");
}

/// A client that reads a page in the middle of a run and then follows the stream sees every chunk once.
pub async fn a_page_and_what_follows_have_no_gap_and_no_repetition(harness: &impl RuntimeHarness) {
    let (slow, model) = (Gate::new(), Gate::new());
    let held = slow.clone();
    let wait = Tool::function("wait", "Waits.", move |_: Word, cx: ToolContext| {
        cx.progress("half way", Some(0.5));
        let held = held.clone();
        async move {
            held.pass().await;
            Ok::<_, ToolError>("waited")
        }
    });
    let quick = Gate::new();
    let held = quick.clone();
    let shout = Tool::function("shout", "Shouts.", move |_: Word, _: ToolContext| {
        let held = held.clone();
        async move {
            held.pass().await;
            Ok::<_, ToolError>("B")
        }
    });
    let calls = Reply::calls([("wait", word("a")), ("shout", word("b"))]);
    let script = ScriptedLlm::new([calls, Reply::text("All done.").at_gate(&model)]);
    let executor = harness.boot(World::new(script)).await;
    let agent = teller().tool(wait).tool(shout).build().unwrap();
    let handle = start_run(&*executor, &agent, "go").await;
    // The stream contains the progress of the slow call before the result of the quick one is recorded.
    let mut shown = executor.follow(&S.into(), 1).await.unwrap();
    while !matches!(
        within(shown.next()).await.unwrap().unwrap().chunk.kind,
        ChunkKind::ToolProgress { .. }
    ) {}
    quick.open();
    let is_done = |page: &SessionPage| {
        let step = page.session.open_step();
        step.is_some_and(|step| step.calls.iter().any(|call| call.finish.is_some()))
    };
    until(async || is_done(&executor.page(&S.into()).await.unwrap())).await;
    let page = executor.page(&S.into()).await.unwrap();
    let live = normalise::stream(&page.live);
    assert!(!live.contains("shout"), "{live}");
    slow.open();
    model.open();
    completes(&handle).await;
    let mut rest = executor.follow(&S.into(), page.next_seq).await.unwrap();
    let mut seen = page.live.clone();
    while let Some(stored) = within(rest.next()).await {
        let stored = stored.unwrap();
        let last = stored.chunk.kind.ends_run();
        seen.push(stored);
        if last {
            break;
        }
    }
    expect![[r#"
        tool_start 1.0 wait {"word":"a"}
        progress 1.0 half way
        tool_end 1.0 success=true "waited"
        checkpoint
        text All done.
        checkpoint
        output "All done."
        run_ended completed
    "#]]
    .assert_eq(&normalise::stream(&seen));
}

/// A session fails after a sweep has listed it and before the sweep reaches it. The sweep does not resume the session.
pub async fn a_late_sweep_leaves_a_session_that_failed_meanwhile(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let agent = teller().tool(ask()).build().unwrap();
    let fails = Reply::fails(ErrorCode::ProviderRejected);
    let script = ScriptedLlm::new([Reply::tool_call("ask", word("a")), fails]);
    let executor = harness.boot(World::new(script).registered(&agent)).await;
    run(&*executor, &agent, "go").await;
    submit(&*executor, answer("1.0")).await;
    // A sweep first lists runs without an owner, and then sessions with news.
    let store = FaultStore::new(harness.store())
        .with_fault(LIST, Fault::HoldAfter(Gate::opened()))
        .with_fault(LIST, Fault::HoldAfter(gate.clone()));
    let world = World::new(ScriptedLlm::new([Reply::text("Again.")])).registered(&agent);
    let sweeper = harness.boot(world.with_store(store)).await;
    let fails = async {
        gate.reached().await;
        let failed = resume(&*executor, &agent).await.unwrap().result().await.unwrap();
        assert_eq!(failed.status, RunStatus::Failed);
        gate.open();
    };
    let (swept, ()) = tokio::join!(sweeper.sweep(), fails);
    assert!(swept.unwrap().is_empty());
    assert_eq!(fold(harness).await.runs().count(), 2);
    assert_eq!(stored_status(harness, &S.into()).await, RunStatus::Failed);
}
