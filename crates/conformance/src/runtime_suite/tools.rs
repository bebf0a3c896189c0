//! Scenarios for tools: order, failures, limits, state, and streamed chunks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use helix_agents_core::llm::RetryPolicy;
use helix_agents_core::step::StopReason;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    Notes, Word, check_log, check_stream, check_transcript, end, fold, note, run, shout, start_run,
    teller, until,
};
use super::{RuntimeHarness, World};

/// The results of concurrent tools are recorded and shown in call order, even if a later call ends
/// first.
pub async fn results_stand_in_call_order_whatever_the_order_of_their_ends(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let held = gate.clone();
    let slow = Tool::function("slow", "Takes its time.", move |_: Word, _: ToolContext| {
        let held = held.clone();
        async move {
            held.pass().await;
            Ok("slow")
        }
    });
    let agent = teller().tool(slow).tool(shout()).build().unwrap();
    let replies = [
        Reply::calls([("slow", json!({"word": "x"})), ("shout", json!({"word": "hi"}))])
            .with_text("Let me see."),
        Reply::text("done"),
    ];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    // The result of the quick call is recorded before the slow one ends.
    until(async || {
        let fold = fold(harness).await;
        fold.open_step().is_some_and(|step| step.calls.iter().any(|call| call.finish.is_some()))
    })
    .await;
    gate.open();
    end(&handle).await;
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5 "Let me see."
          call 1.0 slow({"word":"x"})
          call 1.1 shout({"word":"hi"})
          result 1.0 "slow"
          result 1.1 "HI"
        step 1 closed
        step 2 reply EndTurn in=10 out=5 "done"
        step 2 closed
        end completed "done"
    "#]],
    )
    .await;
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant Some("Let me see.") slow({"word":"x"}) shout({"word":"hi"})
        tool slow "slow"
        tool shout "HI"
        assistant Some("done")
    "#]],
    )
    .await;
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        text Let me see.
        tool_arg 0 slow
        args {"word":"x"}
        tool_arg 1 shout
        args {"word":"hi"}
        tool_start 1.0 slow {"word":"x"}
        tool_end 1.0 success=true "slow"
        tool_start 1.1 shout {"word":"hi"}
        tool_end 1.1 success=true "HI"
        checkpoint
        text done
        checkpoint
        output "done"
        run_ended completed
    "#]],
    )
    .await;
}

/// The error of a tool is the result of its call, and the run continues.
pub async fn a_failing_tool_is_reported_to_the_model(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).build().unwrap();
    let replies = [Reply::tool_call("shout", json!({"word": ""})), Reply::text("sorry")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    run(&*executor, &agent, "go").await;
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant None shout({"word":""})
        tool shout {"error":"nothing to shout"}
        assistant Some("sorry")
    "#]],
    )
    .await;
}

/// Calls of unknown tools and calls with invalid arguments are not executed. The model gets an
/// error for each.
pub async fn unknown_tools_and_bad_arguments_are_answered_without_running(
    harness: &impl RuntimeHarness,
) {
    let agent = teller().tool(shout()).build().unwrap();
    let replies = [
        Reply::calls([("whisper", json!({})), ("shout", json!({"word": 7}))]),
        Reply::raw_call("shout", "{\"word\": \"unend"),
        Reply::text("sorry"),
    ];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let handle = start_run(&*executor, &agent, "go").await;
    end(&handle).await;
    check_log(harness, &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 whisper({})
          call 1.1 shout({"word":7})
          result 1.0 error tool_unknown: there is no tool `whisper`; the tools are: shout
          result 1.1 error tool_input_invalid: the arguments do not match the schema: at /word: 7 is not of type "string"
        step 1 closed
        step 2 reply ToolUse in=10 out=5
          call 2.0 shout({"word": "unend)
          result 2.0 error tool_call_truncated: the arguments are not valid JSON; the call was not run
        step 2 closed
        step 3 reply EndTurn in=10 out=5 "sorry"
        step 3 closed
        end completed "sorry"
    "#]]).await;
    check_stream(&handle, &expect![[r#"
        run_started
        tool_arg 0 whisper
        args {}
        tool_arg 1 shout
        args {"word":7}
        tool_error 1.0 tool_unknown: there is no tool `whisper`; the tools are: shout
        tool_end 1.0 success=false
        tool_error 1.1 tool_input_invalid: the arguments do not match the schema: at /word: 7 is not of type "string"
        tool_end 1.1 success=false
        checkpoint
        tool_arg 0 shout
        args {"word": "unend
        tool_error 2.0 tool_call_truncated: the arguments are not valid JSON; the call was not run
        tool_end 2.0 success=false
        checkpoint
        text sorry
        checkpoint
        output "sorry"
        run_ended completed
    "#]]).await;
}

/// A reply that was cut off executes no calls, even if the arguments can be parsed.
pub async fn calls_of_a_cut_off_reply_are_not_run(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).build().unwrap();
    let replies = [
        Reply::tool_call("shout", json!({"word": "hi"})).with_stop_reason(StopReason::MaxTokens),
        Reply::text("sorry"),
    ];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    run(&*executor, &agent, "go").await;
    check_log(harness, &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply MaxTokens in=10 out=5
          call 1.0 shout({"word":"hi"})
          result 1.0 error tool_call_truncated: the reply was cut off at the token limit; the call was not run
        step 1 closed
        step 2 reply EndTurn in=10 out=5 "sorry"
        step 2 closed
        end completed "sorry"
    "#]]).await;
}

/// A panic fails the tool, not the run.
pub async fn a_panic_is_contained(harness: &impl RuntimeHarness) {
    let bomb = Tool::function("bomb", "Explodes.", |input: Word, _: ToolContext| async move {
        assert!(input.word.is_empty(), "boom {}", input.word);
        Ok(())
    });
    let agent = teller().tool(bomb).build().unwrap();
    let replies = [Reply::tool_call("bomb", json!({"word": "x"})), Reply::text("ouch")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    run(&*executor, &agent, "go").await;
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant None bomb({"word":"x"})
        tool bomb {"error":"the tool panicked: boom x"}
        assistant Some("ouch")
    "#]],
    )
    .await;
}

/// A tool that does not return within its timeout fails. The model gets the error.
pub async fn a_hanging_tool_is_timed_out(harness: &impl RuntimeHarness) {
    let hang = Tool::function("hang", "Hangs.", |_: Word, _: ToolContext| {
        std::future::pending::<Result<(), ToolError>>()
    })
    .timeout(Duration::from_millis(50));
    let agent = teller().tool(hang).build().unwrap();
    let replies = [Reply::tool_call("hang", json!({"word": "x"})), Reply::text("too bad")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    run(&*executor, &agent, "go").await;
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant None hang({"word":"x"})
        tool hang {"error":"the tool did not finish within 50ms"}
        assistant Some("too bad")
    "#]],
    )
    .await;
}

/// A tool with a retry policy runs again after a retryable error. Only the result and the state
/// change of the last attempt are recorded.
pub async fn a_passing_failure_is_tried_again(harness: &impl RuntimeHarness) {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let flaky = Tool::function("flaky", "Works in the end.", move |_: Word, cx: ToolContext| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            cx.update_state(|state: &mut Notes| state.notes.push(format!("try {number}")))?;
            if number < 2 {
                return Err(ToolError::new("not yet").retryable());
            }
            Ok(cx.attempt())
        }
    })
    .retry(RetryPolicy::new(3).base(Duration::from_millis(1)).max(Duration::from_millis(5)));
    let agent = teller().state::<Notes>().tool(flaky).build().unwrap();
    let replies = [Reply::tool_call("flaky", json!({"word": "x"})), Reply::text("done")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    run(&*executor, &agent, "go").await;
    check_log(
        harness,
        &expect![[r#"
        session teller state={"notes":[],"last":""}
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 flaky({"word":"x"})
          result 1.0 3 state=[{"op":"add","path":"/notes/-","value":"try 2"}]
        step 1 closed
        step 2 reply EndTurn in=10 out=5 "done"
        step 2 closed
        end completed "done"
    "#]],
    )
    .await;
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}

/// A tool whose result is too large fails, and no part of the result is recorded.
pub async fn a_result_over_the_limit_is_refused(harness: &impl RuntimeHarness) {
    let flood = Tool::function("flood", "Returns 50 MB.", |_: Word, _: ToolContext| async {
        Ok("x".repeat(50 * 1024 * 1024))
    });
    let agent = teller().tool(flood).build().unwrap();
    let replies = [Reply::tool_call("flood", json!({"word": "x"})), Reply::text("too much")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    run(&*executor, &agent, "go").await;
    check_transcript(harness, &expect![[r#"
        user "go"
        assistant None flood({"word":"x"})
        tool flood {"error":"the result has 52428802 bytes, and 1048576 is the limit; ask for less at once"}
        assistant Some("too much")
    "#]]).await;
}

/// The agent limits the number of concurrent tools.
pub async fn concurrency_is_bounded(harness: &impl RuntimeHarness) {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Gate::new();
    let shared = (Arc::clone(&running), Arc::clone(&most), gate.clone());
    let busy = Tool::function("busy", "Is busy.", move |_: Word, _: ToolContext| {
        let (running, most, gate) = shared.clone();
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.pass().await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    });
    let agent = teller().tool(busy).tool_concurrency(3).build().unwrap();
    let calls = vec![("busy", json!({"word": "x"})); 9];
    let llm = ScriptedLlm::new([Reply::calls(calls), Reply::text("done")]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached_by(3).await;
    gate.open();
    end(&handle).await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

/// State changes of concurrent tools are merged: two additions to a list are both kept, in call
/// order. For a scalar, the value of the later call is kept.
pub async fn state_changes_of_parallel_tools_merge_in_call_order(harness: &impl RuntimeHarness) {
    let agent = teller().state::<Notes>().tool(note()).build().unwrap();
    let call = |word: &str| ("note", json!({"word": word}));
    let replies = [Reply::calls([call("a"), call("b")]), Reply::text("done")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    run(&*executor, &agent, "go").await;
    assert_eq!(**fold(harness).await.state(), json!({"notes": ["a", "b"], "last": "b"}));
    check_log(harness, &expect![[r#"
        session teller state={"notes":[],"last":""}
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 note({"word":"a"})
          call 1.1 note({"word":"b"})
          result 1.0 1 state=[{"op":"add","path":"/notes/-","value":"a"},{"op":"add","path":"/last","value":"a"}]
          result 1.1 1 state=[{"op":"add","path":"/notes/-","value":"b"},{"op":"add","path":"/last","value":"b"}]
        step 1 closed
        step 2 reply EndTurn in=10 out=5 "done"
        step 2 closed
        end completed "done"
    "#]]).await;
}

/// Progress and custom chunks of a tool are in the stream between its start and its end.
pub async fn a_tool_shows_progress_and_custom_chunks(harness: &impl RuntimeHarness) {
    let show = Tool::function("show", "Shows.", |_: Word, cx: ToolContext| async move {
        cx.progress("half way", Some(0.5));
        cx.emit("found", &json!({"n": 1}))?;
        cx.record_usage("pages", 3.0);
        Ok("shown")
    });
    let agent = teller().tool(show).build().unwrap();
    let replies = [Reply::tool_call("show", json!({"word": "x"})), Reply::text("done")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let handle = start_run(&*executor, &agent, "go").await;
    end(&handle).await;
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        tool_arg 0 show
        args {"word":"x"}
        tool_start 1.0 show {"word":"x"}
        progress 1.0 half way
        custom found {"n":1}
        tool_end 1.0 success=true "shown"
        checkpoint
        text done
        checkpoint
        output "done"
        run_ended completed
    "#]],
    )
    .await;
    assert_eq!(fold(harness).await.usage().custom["tool:show"]["pages"], 3.0);
}

/// All attempts of a call have the same idempotency key. Another call with the same arguments has
/// another key.
pub async fn the_idempotency_key_is_the_same_for_every_try(harness: &impl RuntimeHarness) {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&keys);
    let keyed = Tool::function("keyed", "Notes its key.", move |_: Word, cx: ToolContext| {
        noted.lock().unwrap().push(cx.idempotency_key());
        async move {
            if cx.attempt() == 1 {
                return Err(ToolError::new("not yet").retryable());
            }
            Ok(())
        }
    })
    .retry(RetryPolicy::new(1).base(Duration::ZERO).max(Duration::ZERO));
    let agent = teller().tool(keyed).build().unwrap();
    let call = ("keyed", json!({"word": "x"}));
    let llm = ScriptedLlm::new([Reply::calls([call.clone(), call]), Reply::text("done")]);
    let executor = harness.boot(World::new(llm)).await;
    run(&*executor, &agent, "go").await;
    let mut keys = keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 4);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 2, "one key for each call");
}
