//! Scenarios for interrupts, aborts, and which runs may start.

use std::time::Duration;

use expect_test::expect;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{Input, MessageOptions, Resumable, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::tool::{Tool, ToolContext};
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    S, Word, check_log, check_stream, completes, end, fold, held, options, resume, run, shout,
    start_run, teller, word,
};
use super::{RuntimeHarness, World};

/// An interrupted run completes its current step and then stops. A resume continues the turn.
pub async fn an_interrupted_run_stops_at_the_step_boundary_and_resumes(
    harness: &impl RuntimeHarness,
) {
    let agent = teller().tool(shout()).build().unwrap();
    let gate = Gate::new();
    let replies =
        [Reply::tool_call("shout", json!({"word": "a"})).at_gate(&gate), Reply::text("done")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    handle.interrupt(Some("lunch".to_owned())).await.unwrap();
    gate.open();
    let result = end(&handle).await;
    assert_eq!(result.status, RunStatus::Interrupted);
    assert_eq!(result.reason.as_deref(), Some("lunch"));
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        tool_arg 0 shout
        args {"word":"a"}
        tool_start 1.0 shout {"word":"a"}
        tool_end 1.0 success=true "A"
        checkpoint
        run_interrupted Some("lunch")
    "#]],
    )
    .await;
    let session = SessionId::from(S);
    assert_eq!(executor.can_resume(&session).await.unwrap(), Resumable::Yes);
    let handle = resume(&*executor, &agent).await.unwrap();
    completes(&handle).await;
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        interrupt requested Some("lunch")
        step 1 reply ToolUse in=10 out=5
          call 1.0 shout({"word":"a"})
          result 1.0 "A"
        step 1 closed
        end interrupted Some("lunch")
        run Resume
        step 2 reply EndTurn in=10 out=5 "done"
        step 2 closed
        end completed "done"
    "#]],
    )
    .await;
}

/// An abort cancels the active model call and ends the run.
pub async fn an_abort_cancels_the_model_call(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let gate = Gate::new();
    let llm = ScriptedLlm::new([Reply::text("never").at_gate(&gate)]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    handle.abort(Some("enough".to_owned())).await.unwrap();
    let result = end(&handle).await;
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Aborted, Some("enough")));
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        abort requested Some("enough")
        end aborted Some("enough")
    "#]],
    )
    .await;
}

/// Returns a tool that waits at the gate, and stops with a result when it is cancelled.
fn polite(gate: &Gate) -> Tool {
    let gate = gate.clone();
    Tool::function("polite", "Stops when asked.", move |_: Word, cx: ToolContext| {
        let gate = gate.clone();
        async move {
            tokio::select! {
                () = gate.pass() => Ok("finished"),
                () = cx.cancellation().cancelled() => Ok("stopped when asked"),
            }
        }
    })
}

/// An abort cancels the active tools. Every open call has a result before the run ends.
pub async fn an_abort_cancels_tools_and_answers_their_calls(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let rude_gate = gate.clone();
    let rude = Tool::function("rude", "Does not listen.", move |_: Word, _: ToolContext| {
        let gate = rude_gate.clone();
        async move {
            gate.pass().await;
            Ok("finished")
        }
    });
    let agent = teller().tool(polite(&gate)).tool(rude).build().unwrap();
    let word = json!({"word": "x"});
    let llm = ScriptedLlm::new([Reply::calls([("polite", word.clone()), ("rude", word)])]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached_by(2).await;
    handle.abort(None).await.unwrap();
    assert_eq!(end(&handle).await.status, RunStatus::Aborted);
    check_log(harness, &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 polite({"word":"x"})
          call 1.1 rude({"word":"x"})
        abort requested None
          result 1.0 "stopped when asked"
          result 1.1 error tool_outcome_unknown: the run was aborted before the call had a result; whether it acted is not known
        step 1 closed
        end aborted None
    "#]]).await;
}

/// The owner of a run reads an abort request only when it appends the result of a tool. Another tool stops when it is
/// cancelled, and its result is recorded.
pub async fn an_abort_that_an_append_reads_waits_for_results(harness: &impl RuntimeHarness) {
    let (gate, started) = (Gate::new(), Gate::new());
    let agent = teller().tool(held("held", &gate)).tool(polite(&started)).build().unwrap();
    let llm = ScriptedLlm::new([Reply::calls([("held", word("x")), ("polite", word("x"))])]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    started.reached().await;
    // Another process appends the request, so the owner does not notice it before its append.
    let other = harness.boot(World::new(ScriptedLlm::new([]))).await;
    other.abort(&S.into(), None).await.unwrap();
    gate.open();
    assert_eq!(end(&handle).await.status, RunStatus::Aborted);
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 held({"word":"x"})
          call 1.1 polite({"word":"x"})
        abort requested None
          result 1.0 "x"
          result 1.1 "stopped when asked"
        step 1 closed
        end aborted None
        "#]],
    )
    .await;
}

/// An interrupt or abort of a run that has ended is refused and writes nothing.
pub async fn a_request_to_an_ended_run_is_refused(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::text("done")]))).await;
    let handle = start_run(&*executor, &agent, "go").await;
    end(&handle).await;
    let before = fold(harness).await.position().version;
    assert_eq!(handle.interrupt(None).await.unwrap_err().code(), ErrorCode::NothingToStop);
    assert_eq!(handle.abort(None).await.unwrap_err().code(), ErrorCode::NothingToStop);
    assert_eq!(fold(harness).await.position().version, before);
}

/// `resume` refuses a completed session, because there is nothing to continue. It also refuses a
/// session that does not exist.
pub async fn resuming_what_is_complete_is_refused(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::text("done")]))).await;
    run(&*executor, &agent, "go").await;
    let refused = resume(&*executor, &agent).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NothingToResume);
    let nobody = SessionId::from("nobody");
    let refused = executor.resume(agent.erased(), &nobody, ResumeOptions::default()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::SessionNotFound);
    assert_eq!(executor.can_resume(&SessionId::from(S)).await.unwrap(), Resumable::Ended);
}

/// A start with the id of a queued message attaches to the last run. A caller that sends a message again may not know
/// that it was queued.
pub async fn a_start_with_the_id_of_a_queued_message_attaches(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).build().unwrap();
    let gate = Gate::new();
    let replies = [Reply::tool_call("shout", word("a")).at_gate(&gate), Reply::text("done")];
    let llm = ScriptedLlm::new(replies);
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    let queued = MessageOptions::default().request("m1");
    executor.queue_message(&S.into(), "And louder.".into(), queued).await.unwrap();
    gate.open();
    completes(&handle).await;
    let again = executor.execute(agent.erased(), "And louder.".into(), options().run("m1")).await;
    let again = again.unwrap();
    assert_eq!(again.run(), handle.run());
    completes(&again).await;
    assert_eq!((llm.calls(), fold(harness).await.turn()), (2, 1));
}

/// `execute` and `resume` fail with `already_running` while a run of the session is active.
pub async fn executing_on_a_live_session_is_refused(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let gate = Gate::new();
    let executor =
        harness.boot(World::new(ScriptedLlm::new([Reply::text("done").at_gate(&gate)]))).await;
    let handle = start_run(&*executor, &agent, "go").await;
    let again = executor.execute(agent.erased(), Input::from("again"), options()).await;
    assert_eq!(again.unwrap_err().code(), ErrorCode::AlreadyRunning);
    let again = executor.resume(agent.erased(), handle.session(), ResumeOptions::default()).await;
    assert_eq!(again.unwrap_err().code(), ErrorCode::AlreadyRunning);
    gate.open();
    end(&handle).await;
}

/// Another executor on the same store can find a run, interrupt it, and wait for its result.
pub async fn a_run_elsewhere_can_be_followed_and_interrupted(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).build().unwrap();
    let gate = Gate::new();
    let replies =
        [Reply::tool_call("shout", json!({"word": "a"})).at_gate(&gate), Reply::text("done")];
    let here = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let elsewhere = harness.boot(World::new(ScriptedLlm::new([]))).await;
    let handle = start_run(&*here, &agent, "go").await;
    gate.reached().await;
    let seen = elsewhere.handle(handle.session()).await.unwrap();
    assert_eq!(seen.run(), handle.run());
    elsewhere.interrupt(handle.session(), Some("from afar".to_owned())).await.unwrap();
    gate.open();
    let result = end(&seen).await;
    assert_eq!(result.status, RunStatus::Interrupted);
    assert_eq!(result, end(&handle).await);
}

/// A session whose owner has crashed can be aborted once its lease has expired. The abort is
/// recorded as a run of its own and ends the open calls.
pub async fn a_dead_session_can_be_aborted(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let held = gate.clone();
    let hold = Tool::function("hold", "Holds.", move |_: Word, _: ToolContext| {
        let held = held.clone();
        async move {
            held.pass().await;
            Ok(())
        }
    });
    let agent = teller().tool(hold).build().unwrap();
    let llm = ScriptedLlm::new([Reply::tool_call("hold", json!({"word": "x"}))]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    harness.kill().await;
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let session = SessionId::from(S);
    // The crashed owner's lease expires.
    let renewal = harness.store().renew(&session, handle.run(), Duration::ZERO).await.unwrap();
    assert!(renewal.renewed);
    assert_eq!(executor.can_resume(&session).await.unwrap(), Resumable::Yes);
    executor.abort(&session, Some("gone".to_owned())).await.unwrap();
    check_log(harness, &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 hold({"word":"x"})
        run Abort
        abort requested Some("gone")
          result 1.0 error tool_outcome_unknown: the run was aborted before the call had a result; whether it acted is not known
        step 1 closed
        end aborted Some("gone")
    "#]]).await;
    check_stream(&executor.handle(&session).await.unwrap(), &expect![[r#"
        tool_error 1.0 tool_outcome_unknown: the run was aborted before the call had a result; whether it acted is not known
        tool_end 1.0 success=false
        checkpoint
        run_ended aborted
    "#]]).await;
    assert_eq!(executor.can_resume(&session).await.unwrap(), Resumable::Ended);
}
