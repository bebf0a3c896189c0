//! Scenarios for turns without tools: answers, failures, continuation, and who may start a run.

use std::collections::BTreeMap;

use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{ExecuteOptions, Input};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::step::StopReason;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    Notes, S, check_log, check_stream, check_transcript, chunks, completes, end, fold, note,
    options, resume, run, start_run, teller,
};
use super::{RuntimeHarness, World};

/// A reply that contains only text completes the turn, and the text is the output. The log, the
/// transcript and the stream contain the text.
pub async fn text_completes_the_turn(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("Good morning to you.")]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &agent, "hello").await;
    let result = end(&handle).await;
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.output.unwrap().to_value(), json!("Good morning to you."));
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "hello"
        step 1 reply EndTurn in=10 out=5 "Good morning to you."
        step 1 closed
        end completed "Good morning to you."
    "#]],
    )
    .await;
    check_transcript(
        harness,
        &expect![[r#"
        user "hello"
        assistant Some("Good morning to you.")
    "#]],
    )
    .await;
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        text Good morning to you.
        checkpoint
        output "Good morning to you."
        run_ended completed
    "#]],
    )
    .await;
    assert_eq!(llm.seen()[0].prompt, "You tell.");
    assert_eq!(handle.usage().await.unwrap().tokens.input_tokens, 10);
}

/// A text that the provider ended at a stop sequence completes the turn and is the output.
pub async fn text_up_to_a_stop_sequence_completes_the_turn(harness: &impl RuntimeHarness) {
    let reply = Reply::text("one, two").with_stop_reason(StopReason::StopSequence);
    let executor = harness.boot(World::new(ScriptedLlm::new([reply]))).await;
    let result = run(&*executor, &teller().build().unwrap(), "count").await;
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.output.unwrap().to_value(), "one, two");
}

/// The log and the stream contain the thinking of a reply.
pub async fn thinking_is_kept_and_shown(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("4").with_thinking("two and two make four")]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "2 + 2?").await;
    end(&handle).await;
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "2 + 2?"
        step 1 reply EndTurn in=10 out=5 thinking="two and two make four" "4"
        step 1 closed
        end completed "4"
    "#]],
    )
    .await;
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        thinking two and two make four
        text 4
        checkpoint
        output "4"
        run_ended completed
    "#]],
    )
    .await;
}

/// Custom chunks that a model adapter emits are in the stream. An adapter that wraps another one
/// may emit chunks that are not part of the reply.
pub async fn custom_chunks_of_an_adapter_are_shown(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("4").with_custom("plan", json!({ "add": 2 }))]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "2 + 2?").await;
    end(&handle).await;
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        custom plan {"add":2}
        text 4
        checkpoint
        output "4"
        run_ended completed
    "#]],
    )
    .await;
}

/// `execute` on a completed session starts a new turn on the same history.
pub async fn a_completed_session_continues_with_its_history(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("one"), Reply::text("two")]);
    let executor = harness.boot(World::new(llm.clone())).await;
    run(&*executor, &agent, "first").await;
    let second = start_run(&*executor, &agent, "second").await;
    end(&second).await;
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "first"
        step 1 reply EndTurn in=10 out=5 "one"
        step 1 closed
        end completed "one"
        run Continue
        user "second"
        step 2 reply EndTurn in=10 out=5 "two"
        step 2 closed
        end completed "two"
    "#]],
    )
    .await;
    assert_eq!(llm.seen()[1].messages.len(), 3);
    let fold = fold(harness).await;
    assert_eq!((fold.turn(), fold.runs().count()), (2, 2));
    let stray = chunks(&second).await.into_iter().any(|stored| stored.chunk.run != *second.run());
    assert!(!stray, "the second run's stream starts with the second run");
}

/// A session whose stream was reset can start another turn, and the stream contains the chunks of
/// the new run. The earlier content can be read from the log.
pub async fn a_session_whose_stream_was_lost_continues_with_a_new_one(
    harness: &impl RuntimeHarness,
) {
    let agent = teller().build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("one"), Reply::text("two")]);
    let executor = harness.boot(World::new(llm)).await;
    run(&*executor, &agent, "first").await;
    harness.streams().reset(&SessionId::from(S)).await.unwrap();
    let second = start_run(&*executor, &agent, "second").await;
    end(&second).await;
    check_stream(
        &second,
        &expect![[r#"
        run_started
        text two
        checkpoint
        output "two"
        run_ended completed
    "#]],
    )
    .await;
}

/// The caller may choose the run id. A second start with that id attaches to the same run.
pub async fn a_second_execute_under_the_same_run_id_attaches(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let gate = Gate::new();
    let llm = ScriptedLlm::new([Reply::text("one").at_gate(&gate)]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let start = || executor.execute(agent.erased(), Input::from("hi"), options().run("mine"));
    let first = start().await.unwrap();
    gate.reached().await;
    let second = start().await.unwrap();
    gate.open();
    assert_eq!(first.run(), second.run());
    assert_eq!(end(&first).await, end(&second).await);
    assert_eq!(start().await.unwrap().run(), first.run());
    assert_eq!(llm.calls(), 1);
}

/// If several callers create the same session concurrently, one of them starts a run. The others
/// get `already_running`.
pub async fn of_concurrent_creators_exactly_one_wins(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let gate = Gate::new();
    let llm = ScriptedLlm::new([Reply::text("one").at_gate(&gate)]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let starts = (0..8).map(|_| executor.execute(agent.erased(), Input::from("hi"), options()));
    let outcomes = futures_util::future::join_all(starts).await;
    gate.open();
    let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1);
    for error in lost.into_iter().filter_map(Result::err) {
        assert_eq!(error.code(), ErrorCode::AlreadyRunning);
    }
    for handle in won.into_iter().filter_map(Result::ok) {
        end(&handle).await;
    }
    assert_eq!(llm.calls(), 1);
}

/// A turn can start with a state that is given with the input. A state that does not fit the
/// agent's type is refused.
pub async fn a_turn_may_start_with_a_new_state(harness: &impl RuntimeHarness) {
    let agent = teller().state::<Notes>().tool(note()).build().unwrap();
    let replies = [Reply::tool_call("note", json!({"word": "b"})), Reply::text("done")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let mut input = Input::from("go");
    input.state = Some(json!({"notes": 7}));
    let refused = executor.execute(agent.erased(), input.clone(), options()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::InputInvalid);
    input.state = Some(json!({"notes": ["a"]}));
    run(&*executor, &agent, input).await;
    assert_eq!(**fold(harness).await.state(), json!({"notes": ["a", "b"], "last": "b"}));
}

/// `execute` refuses a session of another agent. It also refuses a session id of the form that is
/// reserved for children.
pub async fn another_agents_session_is_refused(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let other = Agent::builder("other").system_prompt("x").model("scripted").build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("one"), Reply::text("two")]);
    let executor = harness.boot(World::new(llm)).await;
    run(&*executor, &agent, "hi").await;
    let refused = executor.execute(other.erased(), Input::from("hi"), options()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::AgentMismatch);
    let bad = ExecuteOptions::default().session("a-sub-1");
    let refused = executor.execute(agent.erased(), Input::from("hi"), bad).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::IdInvalid);
}

/// A run fails if the model returns an error that cannot be retried. A resume calls the model again
/// and completes the turn.
pub async fn a_failing_model_fails_the_run_and_a_resume_continues(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let replies = [Reply::fails(ErrorCode::ProviderUnauthorized), Reply::text("now it works")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let result = run(&*executor, &agent, "hi").await;
    assert_eq!(result.status, RunStatus::Failed);
    assert!(result.error.unwrap().is(ErrorCode::ProviderUnauthorized));
    let handle = resume(&*executor, &agent).await.unwrap();
    completes(&handle).await;
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "hi"
        step 1 reply error=provider_unauthorized: as scripted should_stop=true Error in=10 out=5
        step 1 closed
        end failed provider_unauthorized: as scripted
        run Resume
        step 2 reply EndTurn in=10 out=5 "now it works"
        step 2 closed
        end completed "now it works"
    "#]],
    )
    .await;
}

/// If a reply breaks off, the model is called again. The broken reply counts as a step, and its
/// text is not recorded in the log.
pub async fn an_interrupted_reply_is_requested_again_and_its_text_is_not_recorded(
    harness: &impl RuntimeHarness,
) {
    let agent = teller().build().unwrap();
    let replies =
        [Reply::breaks_off(ErrorCode::ProviderStreamCut, "Good mo"), Reply::text("Good evening.")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let handle = start_run(&*executor, &agent, "hi").await;
    completes(&handle).await;
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "hi"
        step 1 reply error=provider_stream_cut: as scripted should_stop=false Error in=10 out=5
        step 1 closed
        step 2 reply EndTurn in=10 out=5 "Good evening."
        step 2 closed
        end completed "Good evening."
    "#]],
    )
    .await;
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        text Good mo
        checkpoint
        text Good evening.
        checkpoint
        output "Good evening."
        run_ended completed
    "#]],
    )
    .await;
}

/// Three replies in a row may break off. The fourth one fails the run.
pub async fn replies_that_keep_breaking_off_fail_the_run(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let replies = vec![Reply::breaks_off(ErrorCode::ProviderStreamCut, "x"); 9];
    let llm = ScriptedLlm::new(replies);
    let executor = harness.boot(World::new(llm.clone())).await;
    let result = run(&*executor, &agent, "hi").await;
    assert!(result.error.unwrap().is(ErrorCode::ProviderStreamCut));
    assert_eq!(llm.calls(), 4, "three failures in a row are allowed");
}

/// A reply whose stop reason is an error fails the run. Each such stop reason has its own error
/// code.
pub async fn error_stop_reasons_fail_the_run(harness: &impl RuntimeHarness) {
    let cases = BTreeMap::from([
        ("max_tokens", StopReason::MaxTokens),
        ("content_filter", StopReason::ContentFilter),
        ("refusal", StopReason::Refusal),
        ("model_error", StopReason::Error),
        ("stop_reason_unknown", StopReason::Unknown),
    ]);
    let agent = teller().build().unwrap();
    for (code, reason) in cases {
        let llm = ScriptedLlm::new([Reply::text("no").with_stop_reason(reason)]);
        let executor = harness.boot(World::new(llm)).await;
        let options = ExecuteOptions::default().session(format!("{S}-{code}").as_str());
        let handle = executor.execute(agent.erased(), Input::from("hi"), options).await.unwrap();
        let result = end(&handle).await;
        assert_eq!(result.error.as_ref().map(|error| &*error.code), Some(code));
        if reason == StopReason::Unknown {
            assert!(result.error.unwrap().message.contains("as_scripted"));
        }
    }
}
