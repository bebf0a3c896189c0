//! Scenarios for sub-agents that wait for users or are asked to stop, and their parents.

use std::time::Duration;

use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::Event;
use helix_agents_core::executor::Resumable;
use helix_agents_core::session::{RunStatus, Submission, load_events};
use helix_agents_core::tool::{Tool, ToolError};
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};

use super::support::{
    Report, S, Word, asks, check_log, check_stream, check_transcript, child, completes, end, fold,
    fold_of, helper, report, resume, run, scripts, shout, start_run, status, stored_status, submit,
    teller, until, word,
};
use super::{RuntimeHarness, World};

/// The poll interval of waits for the start of a child.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Returns a child that needs an approval before it pays.
fn payer() -> Agent<Report> {
    let pay = Tool::function("pay", "Pays.", |input: Word, _| async move {
        Ok::<_, ToolError>(format!("paid {}", input.word))
    });
    helper("payer").tool(pay.requires_approval()).build().unwrap()
}

fn pays() -> Reply {
    Reply::tool_call("pay", word("rent"))
}

fn payer_and_helper() -> Agent {
    let helper = helper("helper").build().unwrap();
    teller().sub_agent(&payer()).sub_agent(&helper).build().unwrap()
}

/// A parent is suspended while its child waits for a user, and a sibling of the child completes. An answer that is
/// submitted to the root reaches the child.
pub async fn a_parent_waits_while_its_child_waits_for_an_answer(harness: &impl RuntimeHarness) {
    let llm = || {
        scripts([asks(&["payer", "helper"]), Reply::text("Paid.")], [report()])
            .agent("payer", ScriptedLlm::new([pays(), report()]))
    };
    let agent = payer_and_helper();
    let executor = harness.boot(World::new(llm())).await;
    let result = run(&*executor, &agent, "Pay.").await;
    assert_eq!(result.status, RunStatus::SuspendedAwaitingChildren);
    let waits = result.suspended.unwrap();
    assert_eq!((waits.step, waits.calls.len(), waits.children.len()), (1, 0, 1));
    assert_eq!(waits.children[0].session, child("1.0"));
    assert_eq!(stored_status(harness, &child("1.1")).await, RunStatus::Completed);
    assert_eq!(executor.can_resume(&S.into()).await.unwrap(), Resumable::Waiting);
    assert_eq!(resume(&*executor, &agent).await.unwrap_err().code(), ErrorCode::Suspended);

    harness.kill().await;
    let executor = harness.boot(World::new(llm())).await;
    let pending = executor.pending_calls(&S.into()).await.unwrap();
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].session, child("1.0"));
    let wrong = executor.submit_tool_result(&child("1.0"), Submission::approve("1.0")).await;
    assert_eq!(wrong.unwrap_err().code(), ErrorCode::NotRoot);
    submit(&*executor, Submission::approve("1.0")).await;
    assert_eq!(executor.can_resume(&S.into()).await.unwrap(), Resumable::Yes);
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    check_transcript(
        harness,
        &expect![[r#"
            user "Pay."
            assistant None subagent__payer({"message":"find out"}) subagent__helper({"message":"find out"})
            tool subagent__payer {"answer":"yes","score":1}
            tool subagent__helper {"answer":"yes","score":1}
            assistant Some("Paid.")
        "#]],
    )
    .await;
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "Pay."
            step 1 reply ToolUse in=10 out=5
              call 1.0 subagent__payer({"message":"find out"})
              call 1.1 subagent__helper({"message":"find out"})
            child story-sub-1.0 of payer for 1.0
            child story-sub-1.1 of helper for 1.1
            end suspended below 1.0
            run Resume
              result 1.0 {"answer":"yes","score":1} used in=20 out=10 steps=2 calls=1
              result 1.1 {"answer":"yes","score":1} used in=10 out=5 steps=1 calls=0
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "Paid."
            step 2 closed
            end completed "Paid."
        "#]],
    )
    .await;
}

/// With one slot for sub-agents, a child that waits for a user releases it to the next one.
pub async fn a_child_that_waits_for_an_answer_occupies_no_slot(harness: &impl RuntimeHarness) {
    let llm = || {
        scripts([asks(&["payer", "helper", "payer"]), Reply::text("Paid.")], [report()])
            .agent("payer", ScriptedLlm::new([pays(), report()]))
    };
    let helper = helper("helper").build().unwrap();
    let agent =
        teller().sub_agent(&payer()).sub_agent(&helper).tool_concurrency(1).build().unwrap();
    let executor = harness.boot(World::new(llm())).await;
    let result = run(&*executor, &agent, "Pay.").await;
    assert_eq!(result.status, RunStatus::SuspendedAwaitingChildren);
    assert_eq!(result.suspended.unwrap().children.len(), 2);
    assert_eq!(stored_status(harness, &child("1.1")).await, RunStatus::Completed);
    for session in [child("1.0"), child("1.2")] {
        let pending = executor.pending_calls(&S.into()).await.unwrap();
        let call = pending.iter().find(|call| call.session == session).unwrap();
        submit(&*executor, Submission::approve(call.reference())).await;
    }
    completes(&resume(&*executor, &agent).await.unwrap()).await;
}

/// A reply that calls many sub-agents starts as many as may run concurrently, and the others later.
pub async fn children_are_started_a_few_at_a_time(harness: &impl RuntimeHarness) {
    let llm = scripts([asks(&["helper"; 7]), Reply::text("Done.")], [report()]);
    let helper = helper("helper").build().unwrap();
    let agent = teller().sub_agent(&helper).tool_concurrency(2).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &agent, "Go.").await).await;
    assert_eq!(most_children_at_once(harness).await, (7, 2));
}

/// Returns the number of children that the run started, and the maximum number of concurrently open ones.
async fn most_children_at_once(harness: &impl RuntimeHarness) -> (i32, i32) {
    let (mut open, mut most, mut started) = (0, 0, 0);
    for recorded in load_events(&*harness.store(), &S.into(), 0).await.unwrap() {
        match recorded.event {
            Event::ChildStarted(_) => (open, started) = (open + 1, started + 1),
            Event::ToolFinished(_) => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    (started, most)
}

/// With two slots for sub-agents, a slow child keeps one slot, and the other children use the other slot one after
/// another.
pub async fn a_slow_child_holds_no_other(harness: &impl RuntimeHarness) {
    let slow = Gate::new();
    let calls = asks(&["slow", "helper", "helper", "helper"]);
    let llm = scripts([calls, Reply::text("Done.")], [report()])
        .agent("slow", ScriptedLlm::new([report().at_gate(&slow)]));
    let (helper, dawdler) = (helper("helper").build().unwrap(), helper("slow").build().unwrap());
    let agent = teller().sub_agent(&helper).sub_agent(&dawdler).tool_concurrency(2);
    let agent = agent.build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "Go.").await;
    slow.reached().await;
    let last = async {
        while harness.store().head(&child("1.3")).await.unwrap().is_none() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let last = executor.handle(&child("1.3")).await.unwrap();
        last.result().await.unwrap()
    };
    assert_eq!(within(last).await.status, RunStatus::Completed);
    slow.open();
    completes(&handle).await;
    let most = most_children_at_once(harness).await;
    assert_eq!(most, (4, 2));
}

/// A grandchild that waits for a user suspends its parent and the root. After the answer, a resume of the root
/// continues all three.
pub async fn a_waiting_grandchild_suspends_its_ancestors(harness: &impl RuntimeHarness) {
    let llm = scripts([asks(&["helper"]), Reply::text("Paid.")], [asks(&["payer"]), report()])
        .agent("payer", ScriptedLlm::new([pays(), report()]));
    let helper = helper("helper").sub_agent(&payer()).build().unwrap();
    let agent = teller().sub_agent(&helper).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "Pay.").await;
    assert_eq!(end(&handle).await.status, RunStatus::SuspendedAwaitingChildren);
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        tool_arg 0 subagent__helper
        args {"message":"find out"}
        subagent_start 1.0 helper
        [helper] run_started
        [helper] tool_arg 0 subagent__payer
        [helper] args {"message":"find out"}
        [helper] subagent_start 1.0 payer
        [payer] run_started
        [payer] tool_arg 0 pay
        [payer] args {"word":"rent"}
        [payer] approval_request 1.0 pay {"word":"rent"}
        [payer] run_suspended 1.0
        [helper] run_suspended
        run_suspended
    "#]],
    )
    .await;
    let pending = executor.pending_calls(&S.into()).await.unwrap();
    assert_eq!(pending[0].session.as_str(), "story-sub-1.0-sub-1.0");
    assert_eq!(stored_status(harness, &child("1.0")).await, RunStatus::SuspendedAwaitingChildren);
    assert_eq!(fold_of(harness, &pending[0].session).await.root().as_str(), S);
    submit(&*executor, Submission::approve(pending[0].reference().to_string().as_str())).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    assert_eq!(fold(harness).await.tree_usage().steps, 6);
}

/// Returns an agent whose helper calls `shout` before it reports.
fn boss() -> Agent {
    let helper = helper("helper").tool(shout()).build().unwrap();
    teller().sub_agent(&helper).build().unwrap()
}

fn shouts() -> Reply {
    Reply::tool_call("shout", word("hm"))
}

/// An interrupt of a parent is passed to its child, and both stop. A resume of the parent continues both.
pub async fn an_interrupt_reaches_a_child_and_resuming_too(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm =
        scripts([asks(&["helper"]), Reply::text("It is so.")], [shouts().at_gate(&gate), report()]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &boss(), "Is it so?").await;
    gate.reached().await;
    // A child runs before its start is recorded. Until then a request to its parent does not reach it.
    until(async || fold(harness).await.open_children().next().is_some()).await;
    handle.interrupt(Some("lunch".to_owned())).await.unwrap();
    gate.open();
    let result = end(&handle).await;
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Interrupted, Some("lunch")));
    let below = fold_of(harness, &child("1.0")).await;
    assert_eq!((status(&below), below.last_step()), (RunStatus::Interrupted, 1));
    completes(&resume(&*executor, &boss()).await.unwrap()).await;
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "Is it so?"
            step 1 reply ToolUse in=10 out=5
              call 1.0 subagent__helper({"message":"find out"})
            child story-sub-1.0 of helper for 1.0
            interrupt requested Some("lunch")
            end interrupted Some("lunch")
            run Resume
              result 1.0 {"answer":"yes","score":1} used in=20 out=10 steps=2 calls=1
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "It is so."
            step 2 closed
            end completed "It is so."
        "#]],
    )
    .await;
}

/// An abort of a parent also aborts its running child.
pub async fn an_abort_reaches_a_child(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm = scripts([asks(&["helper"])], [report().at_gate(&gate)]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &boss(), "Is it so?").await;
    gate.reached().await;
    handle.abort(None).await.unwrap();
    assert_eq!(end(&handle).await.status, RunStatus::Aborted);
    let below = executor.handle(&child("1.0")).await.unwrap();
    assert_eq!(end(&below).await.status, RunStatus::Aborted);
}

/// An abort of a parent aborts both its running child and its child that waits for a user.
pub async fn an_abort_reaches_a_child_that_waits(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm = scripts([asks(&["payer", "helper"])], [report().at_gate(&gate)])
        .agent("payer", ScriptedLlm::new([pays(), report()]));
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &payer_and_helper(), "Pay.").await;
    gate.reached().await;
    let waiting = async || !executor.pending_calls(&S.into()).await.unwrap().is_empty();
    until(waiting).await;
    handle.abort(None).await.unwrap();
    assert_eq!(end(&handle).await.status, RunStatus::Aborted);
    for call in ["1.0", "1.1"] {
        // The parent's end is in the log before the children are aborted.
        until(async || stored_status(harness, &child(call)).await == RunStatus::Aborted).await;
    }
    assert!(!waiting().await);
}

/// A parent that waits for its child can be aborted without an active run. The child is aborted too, and late answers
/// are refused.
pub async fn a_waiting_family_can_be_aborted(harness: &impl RuntimeHarness) {
    let agent = teller().sub_agent(&payer()).build().unwrap();
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([asks(&["payer"])]))
        .agent("payer", ScriptedLlm::new([pays()]));
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    run(&*executor, &agent, "Pay.").await;
    executor.abort(&S.into(), Some("never mind".to_owned())).await.unwrap();
    assert_eq!(stored_status(harness, &S.into()).await, RunStatus::Aborted);
    assert_eq!(stored_status(harness, &child("1.0")).await, RunStatus::Aborted);
    let late = executor.submit_tool_result(&S.into(), Submission::approve("1.0")).await;
    assert_eq!(late.unwrap_err().code(), ErrorCode::AnswerToAborted);
}
