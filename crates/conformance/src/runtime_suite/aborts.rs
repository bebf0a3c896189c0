//! Scenarios for aborts that conflict with other writes, and the hooks that they call.

use expect_test::expect;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::StopOptions;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{RunStatus, StopKind, Submission};
use helix_agents_core::tool::Tool;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::json;

use super::hooks::Counter;
use super::support::{
    Diary, Notes, S, Word, check_log, completes, end, fold, resume_to_end, run, start_run, submit,
    teller, word,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};

/// A message arrives after the abort has read the log and before it appends. The abort reads again, and the
/// hooks are called once.
pub async fn an_overtaken_abort_calls_hooks_once(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let agent = teller().state::<Notes>().tool(Tool::client::<Word>("ask", "Asks a person."));
    let agent = agent.hooks(Counter).hooks(diary.clone()).build().unwrap();
    let llm = ScriptedLlm::new([Reply::tool_call("ask", word("colour"))]);
    let gate = Gate::new();
    let store = FaultStore::new(harness.store())
        .with_fault("abort_requested", Fault::HoldBefore(gate.clone()));
    let executor = harness.boot(World::new(llm).registered(&agent).with_store(store)).await;
    run(&*executor, &agent, "go").await;
    let overtake = async {
        gate.reached().await;
        executor.send_message(&S.into(), UserMessage::new("Never mind.")).await.unwrap();
        gate.open();
    };
    let session = S.into();
    let both = async { tokio::join!(executor.abort(&session, None), overtake).0 };
    within(both).await.unwrap();
    expect![[r#"
        teller: on_message tool 1.0
        teller: after_tool 1.0 ask success=false tool_not_run
    "#]]
    .assert_eq(&diary.results());
    check_log(
        harness,
        &expect![[r#"
        session teller state={"notes":[],"last":""}
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 ask({"word":"colour"})
        end suspended 1.0 ask Client
        queued "Never mind."
        run Abort
        abort requested None
          result 1.0 error tool_not_run: not run: the run was aborted while the call was pending
        step 1 closed
        state by after_tool [{"op":"add","path":"/notes/-","value":"1.0 saw 0"}]
        end aborted None
    "#]],
    )
    .await;
}

/// Another run answers a call and continues the session after an abort has read the log and before the abort appends.
/// The state changes of that run stay, and the abort ends the calls that the run left open.
pub async fn an_abort_after_another_run_reports_its_open_calls(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let agent = teller().state::<Notes>().tool(Tool::client::<Word>("ask", "Asks a person."));
    let agent = agent.hooks(Counter).hooks(diary.clone()).build().unwrap();
    let asks = |what: &str| Reply::tool_call("ask", word(what));
    let gate = Gate::new();
    let store = FaultStore::new(harness.store())
        .with_fault("abort_requested", Fault::HoldBefore(gate.clone()));
    let llm = ScriptedLlm::new([asks("colour"), asks("size")]);
    let executor = harness.boot(World::new(llm).registered(&agent).with_store(store)).await;
    run(&*executor, &agent, "go").await;
    let overtake = async {
        gate.reached().await;
        submit(&*executor, Submission::result("1.0", &"red").unwrap()).await;
        assert!(resume_to_end(&*executor, &agent).await.status.is_suspended());
        gate.open();
    };
    let session = S.into();
    let both = async { tokio::join!(executor.abort(&session, None), overtake).0 };
    within(both).await.unwrap();
    assert_eq!(fold(harness).await.state()["notes"], json!(["1.0 saw 0", "2.0 saw 1"]));
    expect![[r#"
        teller: on_message tool 1.0
        teller: after_tool 1.0 ask success=false tool_not_run
        teller: on_message tool 1.0
        teller: after_tool 1.0 ask success=true
        teller: on_message tool 2.0
        teller: after_tool 2.0 ask success=false tool_not_run
    "#]]
    .assert_eq(&diary.results());
}

/// A request to stop an earlier run changes nothing while a later one is in progress.
pub async fn a_stop_of_an_earlier_run_leaves_the_next_one(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let gate = Gate::new();
    let llm = ScriptedLlm::new([Reply::text("one"), Reply::text("two").at_gate(&gate)]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let first = start_run(&*executor, &agent, "go").await;
    completes(&first).await;
    let second = start_run(&*executor, &agent, "on").await;
    gate.reached().await;
    for kind in [StopKind::Interrupt, StopKind::Abort] {
        let options = StopOptions::default().run(first.run().clone());
        let refused = executor.stop(&S.into(), kind, options).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NothingToStop, "{kind:?}");
    }
    gate.open();
    completes(&second).await;
}

/// An abort names a suspended run. Before it is appended, an answer arrives and another run continues the session, which
/// the abort leaves alone.
pub async fn an_abort_of_a_run_that_was_resumed_leaves_the_next_one(harness: &impl RuntimeHarness) {
    let agent = teller().tool(Tool::client::<Word>("ask", "Asks a person.")).build().unwrap();
    let gate = Gate::new();
    let store = FaultStore::new(harness.store())
        .with_fault("abort_requested", Fault::HoldBefore(gate.clone()));
    let llm = ScriptedLlm::new([Reply::tool_call("ask", word("colour")), Reply::text("Red.")]);
    let executor = harness.boot(World::new(llm).registered(&agent).with_store(store)).await;
    let first = start_run(&*executor, &agent, "go").await;
    assert!(end(&first).await.status.is_suspended());
    let overtake = async {
        gate.reached().await;
        submit(&*executor, Submission::result("1.0", &"red").unwrap()).await;
        assert_eq!(resume_to_end(&*executor, &agent).await.status, RunStatus::Completed);
        gate.open();
    };
    let session = S.into();
    let options = StopOptions::default().run(first.run().clone());
    let abort = executor.stop(&session, StopKind::Abort, options);
    let refused = within(async { tokio::join!(abort, overtake).0 }).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NothingToStop);
    assert_eq!(fold(harness).await.last_run().unwrap().status, RunStatus::Completed);
}
