//! Scenarios for rewinding to a checkpoint.

use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::Event;
use helix_agents_core::executor::{AgentExecutor, ForkOptions, ResumeOptions, RunHandle};
use helix_agents_core::session::{RunStatus, START_OF_SESSION, Submission, load_events};
use helix_agents_core::store::SessionStatus;
use helix_agents_core::tool::Tool;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    Notes, S, Trace, Word, all_crashed, asks, check_log, check_transcript, checkpoints, completes,
    end, fold, fold_of, forked, helper, log_of, noted, notes, resume, run, scripts, start_run,
    teller, word,
};
use super::{RuntimeHarness, World};

fn back_to(version: u64) -> ResumeOptions {
    ResumeOptions::default().checkpoint(version)
}

async fn rewound<O>(
    executor: &dyn AgentExecutor,
    agent: &Agent<O>,
    options: ResumeOptions,
) -> RunHandle {
    executor.resume(agent.erased(), &S.into(), options).await.unwrap()
}

/// A rewound session continues with the conversation and the state of the checkpoint. The log keeps all events, and
/// step numbers and usage continue.
pub async fn a_session_goes_back_to_a_checkpoint_and_on(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let executor = harness.boot(World::new(noted())).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await[0];
    let other = ScriptedLlm::new([notes("never"), notes("c"), Reply::text("Otherwise.")]);
    let executor = harness.boot(World::new(other)).await;
    let result = end(&rewound(&*executor, &agent, back_to(at)).await).await;
    assert_eq!(result.output.unwrap().text(), "\"Otherwise.\"");
    let fold = fold(harness).await;
    assert_eq!(fold.state()["notes"], json!(["a", "c"]));
    assert_eq!(fold.usage().tokens.input_tokens, 50);
    assert_eq!(fold.usage().tool_calls, 3);
    let steps: Vec<_> = fold.checkpoints().iter().map(|checkpoint| checkpoint.step).collect();
    assert_eq!((steps, fold.turn(), fold.runs().count()), (vec![1, 4, 5], 1, 2));
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant None note({"word":"a"})
            tool note "a"
            assistant None note({"word":"c"})
            tool note "c"
            assistant Some("Otherwise.")
        "#]],
    )
    .await;
    check_log(
        harness,
        &expect![[r#"
            session teller state={"notes":[],"last":""}
            run Execute
            user "go"
            step 1 reply ToolUse in=10 out=5
              call 1.0 note({"word":"a"})
              result 1.0 "a" state=[{"op":"add","path":"/notes/-","value":"a"}]
            step 1 closed
            step 2 reply ToolUse in=10 out=5
              call 2.0 note({"word":"b"})
              result 2.0 "b" state=[{"op":"add","path":"/notes/-","value":"b"}]
            step 2 closed
            step 3 reply EndTurn in=10 out=5 "Noted."
            step 3 closed
            end completed "Noted."
            went back
            run Resume
            step 4 reply ToolUse in=10 out=5
              call 4.0 note({"word":"c"})
              result 4.0 "c" state=[{"op":"add","path":"/notes/-","value":"c"}]
            step 4 closed
            step 5 reply EndTurn in=10 out=5 "Otherwise."
            step 5 closed
            end completed "Otherwise."
        "#]],
    )
    .await;
    // A removed checkpoint cannot be the target of a rewind, but a fork may still start there.
    let removed = at + 3;
    let code =
        executor.resume(agent.erased(), &S.into(), back_to(removed)).await.unwrap_err().code();
    assert_eq!(code, ErrorCode::CheckpointNotFound);
    let fork = fold_of(harness, &forked(&*executor, removed, "fork").await).await;
    assert_eq!(fork.state()["notes"], json!(["a", "b"]));
}

/// A rewind with a message starts another turn at the checkpoint. Without a message, a rewind to the step that ended
/// the turn ends it again without a model call.
pub async fn a_session_goes_back_and_on_with_a_message(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let llm = noted();
    let executor = harness.boot(World::new(llm.clone())).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await;
    let result = end(&rewound(&*executor, &agent, back_to(at[2])).await).await;
    assert_eq!(result.output.unwrap().text(), "\"Noted.\"");
    assert_eq!(llm.seen().len(), 3, "the model was not called again");
    let message = back_to(at[1]).message("Stop here.");
    let result = end(&rewound(&*executor, &agent, message).await).await;
    assert_eq!(result.status, RunStatus::Completed);
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant None note({"word":"a"})
            tool note "a"
            assistant None note({"word":"b"})
            tool note "b"
            user "Stop here."
            assistant Some("Noted.")
        "#]],
    )
    .await;
    assert_eq!(fold(harness).await.turn(), 2);
    assert_eq!(trace.words(), "a b");
}

/// A rewind to the start of a session removes all messages and restores the initial state. It needs a message, which
/// starts the first turn again.
pub async fn a_session_goes_back_to_its_start(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let executor = harness.boot(World::new(noted())).await;
    run(&*executor, &agent, "go").await;
    let before = log_of(harness, &S.into()).await;
    let start = || back_to(START_OF_SESSION);
    let refused = executor.resume(agent.erased(), &S.into(), start()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InputInvalid);
    assert_eq!(log_of(harness, &S.into()).await, before);
    let gate = Gate::new();
    let held = ScriptedLlm::new([notes("c"), Reply::text("Again.").at_gate(&gate)]);
    let executor = harness.boot(World::new(held)).await;
    rewound(&*executor, &agent, start().message("go again")).await;
    gate.reached().await;
    all_crashed(harness).await;
    let llm = ScriptedLlm::new([notes("c"), Reply::text("Again.")]);
    let executor = harness.boot(World::new(llm)).await;
    assert_eq!(
        end(&resume(&*executor, &agent).await.unwrap()).await.output.unwrap().text(),
        "\"Again.\""
    );
    let fold = fold(harness).await;
    assert_eq!(fold.state()["notes"], json!(["c"]));
    let steps: Vec<_> = fold.checkpoints().iter().map(|checkpoint| checkpoint.step).collect();
    assert_eq!((steps, fold.turn(), trace.words()), (vec![4, 5], 1, "a b c".to_owned()));
    check_transcript(
        harness,
        &expect![[r#"
            user "go again"
            assistant None note({"word":"c"})
            tool note "c"
            assistant Some("Again.")
        "#]],
    )
    .await;
}

/// A session can be rewound after it was suspended, failed or aborted. Its pending calls are discarded, and late
/// answers are refused.
pub async fn a_failed_aborted_or_waiting_session_goes_back(harness: &impl RuntimeHarness) {
    let ask = Tool::client::<Word>("ask", "Asks a person.");
    let trace = Trace::default();
    let agent = teller().state::<Notes>().tool(trace.tool()).tool(ask).build().unwrap();
    let asks = || Reply::tool_call("ask", json!({"word": "?"}));
    let llm = ScriptedLlm::new([notes("a"), asks()]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.status, RunStatus::SuspendedClientTool);
    let at = checkpoints(harness).await[0];

    let llm = ScriptedLlm::new([notes("a"), Reply::fails(ErrorCode::ProviderRejected)]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let result = end(&rewound(&*executor, &agent, back_to(at)).await).await;
    assert_eq!(result.status, RunStatus::Failed);
    let late = Submission::result("2.0", &json!({"word": "!"})).unwrap();
    let late = executor.submit_tool_result(&S.into(), late).await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::CallNotFound);
    assert_eq!(executor.pending_calls(&S.into()).await.unwrap(), []);

    let llm = ScriptedLlm::new([notes("a"), asks()]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let result = end(&rewound(&*executor, &agent, back_to(at)).await).await;
    assert_eq!(result.status, RunStatus::SuspendedClientTool);
    executor.abort(&S.into(), None).await.unwrap();
    assert_eq!(fold(harness).await.status(), SessionStatus::Aborted);

    let llm = ScriptedLlm::new([notes("a"), Reply::text("Done.")]);
    let executor = harness.boot(World::new(llm)).await;
    let result = end(&rewound(&*executor, &agent, back_to(at)).await).await;
    assert_eq!(result.status, RunStatus::Completed);
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant None note({"word":"a"})
            tool note "a"
            assistant Some("Done.")
        "#]],
    )
    .await;
    let fold = fold(harness).await;
    assert_eq!((fold.state()["notes"].clone(), fold.last_step()), (json!(["a"]), 5));
}

/// A session whose process has crashed can be rewound once its lease has expired. A rewind of an active run is refused.
pub async fn a_dead_session_goes_back(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let gate = Gate::new();
    let llm = ScriptedLlm::new([notes("a"), notes("b"), Reply::text("Noted.").at_gate(&gate)]);
    let executor = harness.boot(World::new(llm)).await;
    start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    let at = checkpoints(harness).await[0];
    let early = executor.resume(agent.erased(), &S.into(), back_to(at)).await.unwrap_err();
    assert_eq!(early.code(), ErrorCode::AlreadyRunning, "a live run cannot be rewound");
    all_crashed(harness).await;
    let executor = harness.boot(World::new(noted())).await;
    let options = back_to(at).wait(std::time::Duration::from_secs(60));
    assert_eq!(end(&rewound(&*executor, &agent, options).await).await.status, RunStatus::Completed);
    let fold = fold(harness).await;
    assert_eq!(fold.state()["notes"], json!(["a", "b"]));
    let steps: Vec<_> = fold.checkpoints().iter().map(|checkpoint| checkpoint.step).collect();
    assert_eq!((steps, trace.words()), (vec![1, 3, 4], "a b b".to_owned()));
}

/// A process crashes in the run after a rewind. The next process continues that run without the removed history, and
/// repeats no recorded call.
pub async fn a_restart_after_a_rewind_continues_from_the_checkpoint(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let executor = harness.boot(World::new(noted())).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await[0];
    all_crashed(harness).await;
    let gate = Gate::new();
    let held = ScriptedLlm::new([notes("a"), notes("c"), Reply::text("Now.").at_gate(&gate)]);
    let executor = harness.boot(World::new(held)).await;
    rewound(&*executor, &agent, back_to(at)).await;
    gate.reached().await;
    all_crashed(harness).await;
    let llm = ScriptedLlm::new([notes("a"), notes("c"), Reply::text("Now.")]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(end(&handle).await.output.unwrap().text(), "\"Now.\"");
    assert_eq!(trace.words(), "a b c");
    assert_eq!(fold(harness).await.state()["notes"], json!(["a", "c"]));
}

/// If several processes rewind a session concurrently, one succeeds and the others are refused. The log contains one
/// rewind.
pub async fn of_many_that_go_back_exactly_one_does(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let executor = harness.boot(World::new(noted())).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await[0];
    let last = fold(harness).await.last_run().unwrap().id.clone();
    let mut executors = Vec::new();
    for _ in 0..6 {
        executors.push(harness.boot(World::new(noted())).await);
    }
    let tries = executors.iter().map(|one| async {
        one.resume(agent.erased(), &S.into(), back_to(at).after(last.clone())).await
    });
    let tried = futures_util::future::join_all(tries).await;
    let (won, lost): (Vec<_>, Vec<_>) = tried.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 5));
    for error in lost.into_iter().filter_map(Result::err) {
        let expected = [ErrorCode::AlreadyResumed, ErrorCode::AlreadyRunning];
        assert!(expected.contains(&error.code()), "{error}");
    }
    for handle in won.into_iter().filter_map(Result::ok) {
        completes(&handle).await;
    }
    let log = load_events(&*harness.store(), &S.into(), 0).await.unwrap();
    assert_eq!(
        log.iter().filter(|recorded| matches!(recorded.event, Event::Rewound { .. })).count(),
        1
    );
}

/// A fork or rewind to a version without a checkpoint is refused. So are forks and rewinds with a wrong session, run or
/// agent. Nothing is written.
pub async fn a_fork_or_rewind_to_no_checkpoint_is_refused(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let executor = harness.boot(World::new(noted())).await;
    run(&*executor, &agent, "go").await;
    let (before, at) = (log_of(harness, &S.into()).await, checkpoints(harness).await[0]);
    let fork = async |from: &str, options| executor.fork(&from.into(), options).await;
    let options = ForkOptions::default;
    let codes = [
        fork(S, options().checkpoint(at + 1)).await.unwrap_err().code(),
        fork(S, options().checkpoint(0)).await.unwrap_err().code(),
        fork(S, options().checkpoint(1000)).await.unwrap_err().code(),
        fork("missing", options()).await.unwrap_err().code(),
        fork(S, options().session(S)).await.unwrap_err().code(),
        fork(S, options().session("x-sub-1.0")).await.unwrap_err().code(),
    ];
    let expected = [
        ErrorCode::CheckpointNotFound,
        ErrorCode::CheckpointNotFound,
        ErrorCode::CheckpointNotFound,
        ErrorCode::SessionNotFound,
        ErrorCode::SessionExists,
        ErrorCode::IdInvalid,
    ];
    assert_eq!(codes, expected);
    let another = Agent::builder("another").system_prompt("x").build().unwrap();
    let back = async |options: ResumeOptions| {
        executor.resume(agent.erased(), &S.into(), options).await.unwrap_err().code()
    };
    assert_eq!(back(back_to(at + 1)).await, ErrorCode::CheckpointNotFound);
    assert_eq!(back(back_to(at).after("r-other")).await, ErrorCode::AlreadyResumed);
    let of_another = executor.resume(another.erased(), &S.into(), back_to(at)).await;
    assert_eq!(of_another.unwrap_err().code(), ErrorCode::AgentMismatch);
    assert_eq!(log_of(harness, &S.into()).await, before);
}

/// A rewind before the start of an open child is refused, because it would remove the child's call. It is allowed after
/// the child was aborted with its parent.
pub async fn a_rewind_is_refused_while_a_child_is_open(harness: &impl RuntimeHarness) {
    let ask = Tool::client::<Word>("ask", "Asks a person.");
    let helper = helper("helper").tool(ask).build().unwrap();
    let trace = Trace::default();
    let agent = teller().state::<Notes>().tool(trace.tool()).sub_agent(&helper).build().unwrap();
    let llm = scripts([notes("a"), asks(&["helper"])], [Reply::tool_call("ask", word("?"))]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.status, RunStatus::SuspendedAwaitingChildren);
    let at = checkpoints(harness).await[0];
    let early = executor.resume(agent.erased(), &S.into(), back_to(at)).await.unwrap_err();
    assert_eq!(early.code(), ErrorCode::ChildrenOpen);
    // A fork from before the child's start has no child.
    let fork = fold_of(harness, &forked(&*executor, at, "fork").await).await;
    assert_eq!(fork.open_children().count(), 0);
    executor.abort(&S.into(), None).await.unwrap();
    let llm = ScriptedLlm::new([notes("a"), Reply::text("Without help.")]);
    let executor = harness.boot(World::new(llm)).await;
    let result = end(&rewound(&*executor, &agent, back_to(at)).await).await;
    assert_eq!(result.output.unwrap().text(), "\"Without help.\"");
}
