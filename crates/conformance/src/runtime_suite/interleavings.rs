//! Scenarios for other writes and faults at critical moments.

use std::sync::Arc;

use expect_test::expect;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::{Event, SCHEMA, ToolFinish, ToolOutcome, encode};
use helix_agents_core::executor::{AgentExecutor, ResumeOptions};
use helix_agents_core::id::{AppendId, CallId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::{Append, AppendOutcome, Guard, LeaseChange, Position};
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::json;

use super::support::{
    S, all_crashed, check_log, check_transcript, completes, end, fold, held, options, resume,
    shout, start_run, teller,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};

fn script() -> ScriptedLlm {
    ScriptedLlm::new([Reply::tool_call("shout", json!({"word": "a"})), Reply::text("done")])
}

async fn with_fault_everywhere(harness: &impl RuntimeHarness, fault: &Fault) {
    let agent = teller().tool(shout()).build().unwrap();
    let mut store = FaultStore::new(harness.store());
    for text in ["session_created", "tool_calls", "tool_finished", "run_ended"] {
        store = store.with_fault(text, fault.clone());
    }
    let llm = script();
    let executor = harness.boot(World::new(llm.clone()).with_store(store)).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    assert_eq!(llm.calls(), 2);
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 shout({"word":"a"})
          result 1.0 "A"
        step 1 closed
        step 2 reply EndTurn in=10 out=5 "done"
        step 2 closed
        end completed "done"
    "#]],
    )
    .await;
}

/// The reply to each of several appends is lost once, and the run completes. No event is lost or duplicated.
pub async fn a_lost_reply_is_resolved_by_asking_again(harness: &impl RuntimeHarness) {
    with_fault_everywhere(harness, &Fault::LoseReply).await;
}

/// Each of several appends fails once before it reaches the store, and the run completes. No event is lost or
/// duplicated.
pub async fn an_append_that_never_arrived_is_sent_again(harness: &impl RuntimeHarness) {
    with_fault_everywhere(harness, &Fault::FailBefore).await;
}

/// The caller that starts or resumes a run is dropped before the store has replied. The run is in the log,
/// and a process executes it.
pub async fn a_run_continues_without_its_caller(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let [start, resumed] = [Gate::new(), Gate::new()];
    let store = FaultStore::new(harness.store())
        .with_fault("run_started", Fault::HoldAfter(start.clone()))
        .with_fault("run_started", Fault::HoldAfter(resumed.clone()));
    let replies = [Reply::fails(ErrorCode::ProviderUnauthorized), Reply::text("done")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies)).with_store(store)).await;
    tokio::select! {
        started = start_run(&*executor, &agent, "go") => panic!("the append was not held: {started:?}"),
        () = within(start.reached()) => start.open(),
    }
    let handle = executor.handle(&S.into()).await.unwrap();
    assert_eq!(end(&handle).await.status, RunStatus::Failed);
    tokio::select! {
        resumed = resume(&*executor, &agent) => panic!("the append was not held: {resumed:?}"),
        () = within(resumed.reached()) => resumed.open(),
    }
    completes(&executor.handle(&S.into()).await.unwrap()).await;
}

/// A run stops with `history_lost` if its log was rolled back and continued differently up to the same version. It
/// writes nothing to the other history.
pub async fn a_stranger_at_the_same_version_is_history_lost(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).build().unwrap();
    let gate = Gate::new();
    let store = FaultStore::new(harness.store())
        .with_fault("tool_finished", Fault::HoldBefore(gate.clone()));
    let executor = harness.boot(World::new(script()).with_store(store)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    // The store loses all data and gets another history of the same length.
    let old = harness.store().read_log(handle.session(), 0, 100).await.unwrap();
    let head = harness.store().head(handle.session()).await.unwrap().unwrap();
    harness.store().delete(handle.session()).await.unwrap();
    let mut expected = Position::start();
    for (number, append) in old.into_iter().enumerate() {
        let stranger = Append {
            session: handle.session().clone(),
            expected: expected.clone(),
            id: AppendId::from(format!("stranger-{number}")),
            run: append.run.clone(),
            schema: append.schema,
            count: append.count,
            body: append.body.clone(),
            summary: Some(head.summary.clone()),
            usage: None,
            lease: LeaseChange::Keep,
            guard: Guard::None,
        };
        expected = Position { version: append.version(), append: stranger.id.clone() };
        if number == 0 {
            harness.store().create_session(head.created.clone(), stranger).await.unwrap();
        } else {
            harness.store().append(stranger).await.unwrap();
        }
    }
    let before = fold(harness).await.position().clone();
    gate.open();
    let error = within(handle.result()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::HistoryLost);
    assert_eq!(
        *fold(harness).await.position(),
        before,
        "an event was written to the other history"
    );
}

/// An interrupt arrives after the run decided to continue and before it appended that decision. The run stops at the
/// end of the step.
pub async fn a_request_between_fold_and_append_changes_the_decision(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).build().unwrap();
    let gate = Gate::new();
    let store =
        FaultStore::new(harness.store()).with_fault("step_closed", Fault::HoldBefore(gate.clone()));
    let llm = script();
    let executor = harness.boot(World::new(llm.clone()).with_store(store)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    let elsewhere = harness.boot(World::new(script())).await;
    elsewhere.interrupt(handle.session(), None).await.unwrap();
    gate.open();
    assert_eq!(end(&handle).await.status, RunStatus::Interrupted);
    assert_eq!(llm.calls(), 1);
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 shout({"word":"a"})
        interrupt requested None
          result 1.0 "A"
        step 1 closed
        end interrupted None
    "#]],
    )
    .await;
}

/// Two callers resume the same interrupted session. The second resume reaches the store after the first run has ended,
/// and fails with `already_resumed`.
pub async fn a_late_resumer_learns_that_another_run_ended(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).build().unwrap();
    let gate = Gate::new();
    let llm = ScriptedLlm::new([
        Reply::tool_call("shout", json!({"word": "a"})).at_gate(&gate),
        Reply::fails(ErrorCode::ProviderUnauthorized),
        Reply::text("done"),
    ]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    handle.interrupt(None).await.unwrap();
    gate.open();
    end(&handle).await;
    // The append of the second resume is held before it reaches the store.
    let late = Gate::new();
    let store =
        FaultStore::new(harness.store()).with_fault("run_started", Fault::HoldBefore(late.clone()));
    let second = harness.boot(World::new(llm.clone()).with_store(store)).await;
    let agent_again = agent.clone();
    let refused = tokio::spawn(async move { resume(&*second, &agent_again).await });
    late.reached().await;
    // The first run executes meanwhile, and fails, so that a resume would be allowed again.
    let first = resume(&*executor, &agent).await.unwrap();
    assert_eq!(end(&first).await.status, RunStatus::Failed);
    late.open();
    let error = within(refused).await.unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::AlreadyResumed);
    // The same for a caller that states the run that it saw, long after.
    let stale = ResumeOptions::default().after(handle.run().as_str());
    let error = executor.resume(agent.erased(), handle.session(), stale).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::AlreadyResumed);
}

/// The lease renewals of a slow owner do not reach the store, and another process takes over. The run of the slow owner
/// fails with `superseded` and writes nothing more.
pub async fn an_owner_that_is_slow_and_not_dead_is_superseded(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).build().unwrap();
    let (append, renewals) = (Gate::new(), Gate::new());
    let store = FaultStore::new(harness.store())
        .with_fault("tool_finished", Fault::HoldBefore(append.clone()))
        .hold_renewals(&renewals);
    let slow = harness.boot(World::new(script()).with_store(store).short_lease()).await;
    let handle = start_run(&*slow, &agent, "go").await;
    append.reached().await;
    let quick = harness.boot(World::new(script())).await;
    let second = resume(&*quick, &agent).await.unwrap();
    completes(&second).await;
    append.open();
    renewals.open();
    let error = within(handle.result()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Superseded);
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant None shout({"word":"a"})
        tool shout "A"
        assistant Some("done")
    "#]],
    )
    .await;
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 shout({"word":"a"})
          result 1.0 "A"
        step 1 closed
        step 2 reply EndTurn in=10 out=5 "done"
        step 2 closed
        end completed "done"
    "#]],
    )
    .await;
}

fn held_script() -> ScriptedLlm {
    ScriptedLlm::new([Reply::tool_call("held", json!({"word": "a"})), Reply::text("done")])
}

/// An owner renews its lease while a tool runs for a long time. A caller that resumes the session waits for the renewal
/// and gets `already_running`.
pub async fn an_owner_with_a_long_effect_keeps_its_lease(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let agent = teller().tool(held("held", &gate)).build().unwrap();
    let executor = harness.boot(World::new(held_script()).short_lease()).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    let elsewhere = harness.boot(World::new(held_script())).await;
    for _ in 0..3 {
        let refused = within(resume(&*elsewhere, &agent)).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::AlreadyRunning);
    }
    gate.open();
    completes(&handle).await;
}

/// An owner that cannot renew its lease stops its run with `store_unavailable`. Another process can then continue the
/// session.
pub async fn an_owner_that_cannot_renew_stops(harness: &impl RuntimeHarness) {
    let (gate, renewals) = (Gate::new(), Gate::new());
    let agent = teller().tool(held("held", &gate)).build().unwrap();
    let store = FaultStore::new(harness.store()).hold_renewals(&renewals);
    let executor = harness.boot(World::new(held_script()).with_store(store).short_lease()).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    let error = within(handle.result()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    gate.open();
    let elsewhere = harness.boot(World::new(held_script())).await;
    let second = resume(&*elsewhere, &agent).await.unwrap();
    completes(&second).await;
}

/// A run stops with an error if the store is full. Recorded data stays, and the session continues when the store has
/// space again.
pub async fn a_full_store_stops_the_run_and_loses_nothing(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).build().unwrap();
    let full = Fault::Refuse(ErrorCode::StoreFull);
    let store = FaultStore::new(harness.store()).with_fault("tool_finished", full);
    let executor = harness.boot(World::new(script()).with_store(store).short_lease()).await;
    let handle = start_run(&*executor, &agent, "go").await;
    let error = within(handle.result()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreFull);
    assert!(fold(harness).await.open_step().is_some(), "the reply is recorded");
    let executor = harness.boot(World::new(script())).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    completes(&handle).await;
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 shout({"word":"a"})
          result 1.0 "A"
        step 1 closed
        step 2 reply EndTurn in=10 out=5 "done"
        step 2 closed
        end completed "done"
    "#]],
    )
    .await;
}

/// `resume` and `execute` refuse a log with events of an unknown kind or schema, and do not change it. A newer version
/// of the program may have written them.
pub async fn a_log_of_an_unknown_schema_is_left_alone(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::text("done")]))).await;
    let handle = start_run(&*executor, &agent, "go").await;
    end(&handle).await;
    let append = |id: &str, schema: u16, body: &'static str, expected: Position| Append {
        session: SessionId::from(S),
        expected,
        id: AppendId::from(id),
        run: None,
        schema,
        count: 1,
        body: body.into(),
        summary: None,
        usage: None,
        lease: LeaseChange::Keep,
        guard: Guard::None,
    };
    let mut position = fold(harness).await.position().clone();
    let strange = [(SCHEMA, r#"[{"heard_of_later":{}}]"#), (SCHEMA + 1, r#"[{"step_closed":7}]"#)];
    for (number, (schema, body)) in strange.into_iter().enumerate() {
        let id = format!("newer-{number}");
        harness.store().append(append(&id, schema, body, position.clone())).await.unwrap();
        position = Position { version: position.version + 1, append: AppendId::from(id) };
        let refused = resume(&*executor, &agent).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::SchemaUnknown);
        let refused = executor.execute(agent.erased(), "again".into(), options()).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::SchemaUnknown);
        let head = harness.store().head(&SessionId::from(S)).await.unwrap().unwrap();
        assert_eq!(head.position, position);
    }
}

/// If an older run records the result of an open call, this result is kept, even if a newer run is executing the call
/// again.
pub async fn a_result_of_an_older_run_is_taken_as_the_truth(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let agent = teller().tool(held("slow", &gate)).build().unwrap();
    let script =
        || ScriptedLlm::new([Reply::tool_call("slow", json!({"word": "a"})), Reply::text("done")]);
    let executor = harness.boot(World::new(script())).await;
    let first = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    all_crashed(harness).await;
    let executor: Arc<dyn AgentExecutor> = harness.boot(World::new(script())).await;
    let second = resume(&*executor, &agent).await.unwrap();
    gate.reached_by(2).await;
    // The old owner was slow, not crashed, and its result arrives now.
    let outcome = ToolOutcome::Success(Json::from(json!("the old run's result")));
    let late = Event::from(ToolFinish::without_run(CallId::new(1, 0), outcome));
    let append = Append {
        session: SessionId::from(S),
        expected: fold(harness).await.position().clone(),
        id: AppendId::from("late"),
        run: Some(first.run().clone()),
        schema: SCHEMA,
        count: 1,
        body: encode(&[late]).unwrap(),
        summary: None,
        usage: None,
        lease: LeaseChange::Keep,
        guard: Guard::None,
    };
    let taken = harness.store().append(append).await.unwrap();
    assert!(matches!(taken, AppendOutcome::Appended { .. }));
    gate.open();
    completes(&second).await;
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant None slow({"word":"a"})
        tool slow "the old run's result"
        assistant Some("done")
    "#]],
    )
    .await;
}
