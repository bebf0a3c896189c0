//! Scenarios for the completion of turns: `__finish__`, finish tools, native outputs, corrections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::session::RunStatus;
use helix_agents_core::step::StopReason;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::{Value, json};

use super::support::{
    Notes, Report, Word, check_log, check_stream, check_transcript, completes, end, fold, note,
    run, shout, start_run, teller,
};
use super::{RuntimeHarness, World};

fn reporter() -> Agent<Report> {
    teller().tool(shout()).output::<Report>().build().unwrap()
}

fn right() -> Value {
    json!({"answer": "yes", "score": 7})
}

/// The transcript contains the `__finish__` call with an acknowledgement as its result. The stream never shows the
/// call.
pub async fn the_finish_call_is_paired_and_never_shown(harness: &impl RuntimeHarness) {
    let llm = ScriptedLlm::new([Reply::finish(right()), Reply::finish(right())]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &reporter(), "go").await;
    let result = end(&handle).await.typed::<Report>().unwrap();
    assert_eq!(result.output, Some(Report { answer: "yes".into(), score: 7 }));
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 __finish__({"answer":"yes","score":7})
          result 1.0 acknowledged finishes {"answer":"yes","score":7}
        step 1 closed
        end completed {"answer":"yes","score":7}
    "#]],
    )
    .await;
    check_transcript(
        harness,
        &expect![[r#"
        user "go"
        assistant None __finish__({"answer":"yes","score":7})
        tool __finish__ {"acknowledged":true}
    "#]],
    )
    .await;
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        checkpoint
        output {"answer":"yes","score":7}
        run_ended completed
    "#]],
    )
    .await;
    assert_eq!(llm.seen()[0].tools, ["shout", "__finish__"]);
    // A completed agent continues with its history and a new typed result.
    assert_eq!(run(&*executor, &reporter(), "again").await.status, RunStatus::Completed);
}

/// The other calls of a reply with a valid `__finish__` get a result that explains why they were not
/// executed.
pub async fn calls_next_to_the_finish_are_answered_and_not_run(harness: &impl RuntimeHarness) {
    let calls = [
        ("shout", json!({"word": "hi"})),
        ("__finish__", right()),
        ("__finish__", json!({"answer": "late", "score": 1})),
    ];
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::calls(calls)]))).await;
    let handle = start_run(&*executor, &reporter(), "go").await;
    end(&handle).await;
    check_log(
        harness,
        &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 shout({"word":"hi"})
          call 1.1 __finish__({"answer":"yes","score":7})
          call 1.2 __finish__({"answer":"late","score":1})
          result 1.0 error tool_not_run: not run: the turn was finished in the same reply
          result 1.1 acknowledged finishes {"answer":"yes","score":7}
          result 1.2 error tool_not_run: not run: the turn was finished in the same reply
        step 1 closed
        end completed {"answer":"yes","score":7}
    "#]],
    )
    .await;
    check_stream(
        &handle,
        &expect![[r#"
            run_started
            tool_arg 0 shout
            args {"word":"hi"}
            tool_error 1.0 tool_not_run: not run: the turn was finished in the same reply
            tool_end 1.0 success=false
            checkpoint
            output {"answer":"yes","score":7}
            run_ended completed
        "#]],
    )
    .await;
}

/// If an output does not fit the schema, the model gets the validation error and must call `__finish__` again. The
/// other calls of the reply are executed.
pub async fn an_output_that_does_not_fit_is_asked_for_again(harness: &impl RuntimeHarness) {
    let wrong = json!({"answer": 1});
    let llm = ScriptedLlm::new([
        Reply::calls([("__finish__", wrong), ("shout", json!({"word": "hi"}))]),
        Reply::finish(right()),
    ]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &reporter(), "go").await;
    completes(&handle).await;
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        tool_arg 1 shout
        args {"word":"hi"}
        tool_start 1.1 shout {"word":"hi"}
        tool_end 1.1 success=true "HI"
        checkpoint
        checkpoint
        output {"answer":"yes","score":7}
        run_ended completed
    "#]],
    )
    .await;
    check_log(harness, &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 __finish__({"answer":1})
          call 1.1 shout({"word":"hi"})
          result 1.0 error output_invalid: the output was not accepted: "score" is a required property; at /answer: 1 is not of type "string"
          result 1.1 "HI"
        step 1 correction "The task is not complete: no valid output was returned. Call the `__finish__` tool directly now, with the output as its arguments."
        step 1 closed
        step 2 reply ToolUse in=10 out=5
          call 2.0 __finish__({"answer":"yes","score":7})
          result 2.0 acknowledged finishes {"answer":"yes","score":7}
        step 2 closed
        end completed {"answer":"yes","score":7}
    "#]]).await;
    assert_eq!(llm.seen()[1].forced_tool.as_deref(), Some("__finish__"));
}

/// A run fails if no output of the model fits the schema. By default, the output is requested again twice.
pub async fn an_output_that_never_fits_fails_the_run(harness: &impl RuntimeHarness) {
    let llm = ScriptedLlm::new(vec![Reply::finish(json!({"answer": 1})); 9]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let result = run(&*executor, &reporter(), "go").await;
    assert!(result.error.unwrap().is(ErrorCode::OutputInvalid));
    assert_eq!(llm.calls(), 3, "two retries by default");
}

/// If the model replies with text instead of the required output, it gets a correction and must call `__finish__` in
/// the next step.
pub async fn text_instead_of_the_output_is_corrected_and_the_tool_forced(
    harness: &impl RuntimeHarness,
) {
    let llm = ScriptedLlm::new([Reply::text("The answer is yes."), Reply::finish(right())]);
    let executor = harness.boot(World::new(llm.clone())).await;
    run(&*executor, &reporter(), "go").await;
    check_log(harness, &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply EndTurn in=10 out=5 "The answer is yes."
        step 1 correction "The task is not complete: no valid output was returned. Call the `__finish__` tool directly now, with the output as its arguments."
        step 1 closed
        step 2 reply ToolUse in=10 out=5
          call 2.0 __finish__({"answer":"yes","score":7})
          result 2.0 acknowledged finishes {"answer":"yes","score":7}
        step 2 closed
        end completed {"answer":"yes","score":7}
    "#]]).await;
    assert_eq!(llm.seen()[0].forced_tool, None);
    assert_eq!(llm.seen()[1].forced_tool.as_deref(), Some("__finish__"));
}

/// If a text is cut off where an output is required, the model gets a correction. The run fails with `max_tokens` if
/// the further replies are cut off too.
pub async fn a_cut_off_answer_is_corrected_and_fails_as_max_tokens(harness: &impl RuntimeHarness) {
    let cut = || Reply::text("The answer, to begin").with_stop_reason(StopReason::MaxTokens);
    let executor = harness.boot(World::new(ScriptedLlm::new([cut(), cut(), cut()]))).await;
    let result = run(&*executor, &reporter(), "go").await;
    assert!(result.error.unwrap().is(ErrorCode::MaxTokens));
    check_transcript(harness, &expect![[r#"
        user "go"
        assistant Some("The answer, to begin")
        user "The task is not complete: no valid output was returned. Call the `__finish__` tool directly now, with the output as its arguments. Your reply was cut off at the token limit: keep it short."
        assistant Some("The answer, to begin")
        user "The task is not complete: no valid output was returned. Call the `__finish__` tool directly now, with the output as its arguments. Your reply was cut off at the token limit: keep it short."
        assistant Some("The answer, to begin")
    "#]]).await;
}

/// An output that is JSON in a string with a code fence is repaired without another model call.
pub async fn a_nearly_right_output_is_repaired(harness: &impl RuntimeHarness) {
    let agent = teller().output::<Vec<String>>().build().unwrap();
    let fenced = json!({"output": "```json\n[\"a\", \"b\"]\n```"});
    let llm = ScriptedLlm::new([Reply::finish(fenced)]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), json!(["a", "b"]));
    assert_eq!(llm.calls(), 1);
}

/// With native output, the model gets the output schema and no tools. An invalid output is corrected, and a valid one
/// is recorded in the reply and at the end of the run.
pub async fn a_native_output_is_corrected_and_recorded(harness: &impl RuntimeHarness) {
    let agent = teller().output::<Report>().native_output().build().unwrap();
    let replies = [Reply::output(json!({"answer": 1})), Reply::output(right())];
    let llm = ScriptedLlm::new(replies);
    let executor = harness.boot(World::new(llm.clone())).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), right());
    check_log(harness, &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply output={"answer":1} EndTurn in=10 out=5
        step 1 correction "Answer again with one JSON value that fits the given schema, and nothing else."
        step 1 closed
        step 2 reply output={"answer":"yes","score":7} EndTurn in=10 out=5
        step 2 closed
        end completed {"answer":"yes","score":7}
    "#]]).await;
    assert!(llm.seen()[0].output_schema.is_some() && llm.seen()[0].tools.is_empty());
}

fn submit(name: &str) -> Tool {
    Tool::function(name, "Submits.", |input: Word, cx: ToolContext| async move {
        if input.word.is_empty() {
            return Err(ToolError::new("the word is missing"));
        }
        cx.update_state(|state: &mut Notes| state.last.clone_from(&input.word))?;
        Ok(json!({"answer": input.word, "score": cx.state::<Notes>()?.notes.len()}))
    })
    .finish_with()
}

/// Finish tools run after the other tools of a reply and see their state changes, regardless of the order of the calls.
pub async fn finish_tools_run_after_the_others_and_see_their_state(harness: &impl RuntimeHarness) {
    let agent = teller()
        .state::<Notes>()
        .tool(note())
        .tool(submit("submit"))
        .output::<Report>()
        .build()
        .unwrap();
    let word = |word: &str| json!({"word": word});
    let calls = [("submit", word("end")), ("note", word("a")), ("note", word("b"))];
    let llm = ScriptedLlm::new([Reply::calls(calls)]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), json!({"answer": "end", "score": 2}));
    assert_eq!(**fold(harness).await.state(), json!({"notes": ["a", "b"], "last": "end"}));
    assert_eq!(llm.seen()[0].tools, ["note", "submit"], "no `__finish__` with a finish tool");
    assert!(llm.seen()[0].prompt.contains("`submit`"));
}

/// If a reply calls several finish tools, the first success gives the output. Later finish tools are still executed.
pub async fn the_first_finish_tool_that_succeeds_gives_the_output(harness: &impl RuntimeHarness) {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    let second = Tool::function("second", "Also submits.", move |_: Word, _: ToolContext| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(right()) }
    })
    .finish_with();
    let agent = teller()
        .state::<Notes>()
        .tool(second)
        .tool(submit("first"))
        .output::<Report>()
        .build()
        .unwrap();
    let word = |word: &str| json!({"word": word});
    let calls = [("first", word("")), ("first", word("one")), ("second", word("two"))];
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::calls(calls)]))).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), json!({"answer": "one", "score": 0}));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

/// A finish tool that fails does not complete the turn. The model gets the error and may try again.
pub async fn a_finish_tool_that_fails_does_not_complete(harness: &impl RuntimeHarness) {
    let agent =
        teller().state::<Notes>().tool(submit("submit")).output::<Report>().build().unwrap();
    let replies = [
        Reply::tool_call("submit", json!({"word": ""})),
        Reply::tool_call("submit", json!({"word": "ok"})),
    ];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    check_log(harness, &expect![[r#"
        session teller state={"notes":[],"last":""}
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 submit({"word":""})
          result 1.0 error tool_failed: the word is missing
        step 1 closed
        step 2 reply ToolUse in=10 out=5
          call 2.0 submit({"word":"ok"})
          result 2.0 {"answer":"ok","score":0} finishes {"answer":"ok","score":0} state=[{"op":"add","path":"/last","value":"ok"}]
        step 2 closed
        end completed {"answer":"ok","score":0}
    "#]]).await;
}

/// An error of a finish transform fails the run, because the transform is part of the agent's definition. The next turn
/// can complete.
pub async fn a_transform_that_fails_fails_the_run(harness: &impl RuntimeHarness) {
    let tool =
        Tool::function(
            "submit",
            "Submits.",
            |input: Word, _: ToolContext| async move { Ok(input) },
        )
        .finish_with_transform(|word: Word| {
            if word.word == "bad" {
                return Err(ToolError::new("will not do"));
            }
            Ok(Report { answer: word.word.to_uppercase(), score: 1 })
        });
    let agent = teller().tool(tool).output::<Report>().build().unwrap();
    let replies = ["bad", "good"].map(|word| Reply::tool_call("submit", json!({"word": word})));
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let failed = run(&*executor, &agent, "go").await;
    assert!(failed.error.unwrap().is(ErrorCode::FinishTransformFailed));
    let result = run(&*executor, &agent, "again").await;
    assert_eq!(result.output.unwrap().to_value(), json!({"answer": "GOOD", "score": 1}));
}

/// A run fails if the result of a finish tool does not fit the output schema. The tool was executed, so the model is
/// not called again.
pub async fn a_finish_result_that_does_not_fit_fails_without_retry(harness: &impl RuntimeHarness) {
    let tool =
        Tool::function("submit", "Submits.", |_: Word, _: ToolContext| async { Ok(json!(7)) })
            .finish_with();
    let agent = teller().tool(tool).output::<Report>().build().unwrap();
    let llm = ScriptedLlm::new([Reply::tool_call("submit", json!({"word": "x"}))]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let failed = run(&*executor, &agent, "go").await;
    assert!(failed.error.unwrap().is(ErrorCode::OutputInvalid));
    assert_eq!(llm.calls(), 1);
}
