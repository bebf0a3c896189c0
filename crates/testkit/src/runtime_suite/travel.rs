//! Forks, and going back to a checkpoint.

use std::sync::{Arc, Mutex};

use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::Event;
use helix_agents_core::executor::{
    AgentExecutor, AgentResult, ExecuteOptions, ForkOptions, Resumable, ResumeOptions, RunHandle,
};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, Session, Submission, load, load_events};
use helix_agents_core::store::SessionStatus;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use serde_json::json;

use super::support::{
    Notes, Report, S, Word, begin, check_log, check_transcript, chunks, fold, resume, run, teller,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};
use crate::gate::{Gate, within};
use crate::normalise;
use crate::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};

/// Which calls ran, with their keys.
type Trace = Arc<Mutex<Vec<(String, String)>>>;

/// A tool that notes its word in the state, and on the trace.
fn note(trace: &Trace) -> Tool {
    let trace = Arc::clone(trace);
    Tool::function("note", "Notes a word.", move |input: Word, cx: ToolContext| {
        trace.lock().unwrap().push((input.word.clone(), cx.idempotency_key()));
        async move {
            cx.update_state(|state: &mut Notes| state.notes.push(input.word.clone()))?;
            Ok::<_, ToolError>(input.word)
        }
    })
}

fn scribe(trace: &Trace) -> Agent<Notes> {
    teller().state::<Notes>().tool(note(trace)).build().unwrap()
}

fn notes(word: &str) -> Reply {
    Reply::tool_call("note", json!({ "word": word }))
}

/// Two notes, and a word at the end.
fn script() -> ScriptedLlm {
    ScriptedLlm::new([notes("a"), notes("b"), Reply::text("Noted.")])
}

fn words(trace: &Trace) -> String {
    let trace = trace.lock().unwrap();
    trace.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ")
}

fn session() -> SessionId {
    SessionId::from(S)
}

fn transcript(fold: &Session) -> String {
    normalise::transcript(fold.transcript())
}

async fn fold_of(harness: &impl RuntimeHarness, session: &SessionId) -> Session {
    load(&*harness.store(), session).await.unwrap()
}

async fn log_of(harness: &impl RuntimeHarness, session: &SessionId) -> String {
    normalise::log(&load_events(&*harness.store(), session, 0).await.unwrap())
}

/// The versions at which a step was closed.
async fn checkpoints(harness: &impl RuntimeHarness) -> Vec<u64> {
    fold(harness).await.checkpoints().iter().map(|it| it.version).collect()
}

async fn forked(executor: &dyn AgentExecutor, at: u64, name: &str) -> SessionId {
    let options = ForkOptions::default().at(at).session(name);
    executor.fork(&session(), options).await.unwrap()
}

fn back_to(version: u64) -> ResumeOptions {
    ResumeOptions::default().from_checkpoint(version)
}

async fn rewound<S, O>(
    executor: &dyn AgentExecutor,
    agent: &Agent<S, O>,
    options: ResumeOptions,
) -> RunHandle {
    executor.resume(agent.erased(), &session(), options).await.unwrap()
}

async fn ended(handle: RunHandle) -> AgentResult {
    within(handle.result()).await.unwrap()
}

/// Both have the same past, and each a future of its own.
pub async fn a_fork_and_its_original_run_on_apart(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let executor = harness.boot(World::new(script())).await;
    run(&*executor, &agent, "go").await;
    let before = log_of(harness, &session()).await;
    let fork = forked(&*executor, checkpoints(harness).await[0], "fork").await;
    let rests = fold_of(harness, &fork).await;
    assert_eq!((rests.id(), rests.status()), (&fork, SessionStatus::Interrupted));
    assert_eq!(rests.forked().unwrap().session, session());
    assert_eq!(executor.can_resume(&fork).await.unwrap(), Resumable::Yes);
    let waits = executor.handle(&fork).await.unwrap();
    assert_eq!(ended(waits).await.status, RunStatus::Interrupted);

    let other = [notes("never"), notes("c"), Reply::text("Otherwise.")];
    let other = harness.boot(World::new(ScriptedLlm::new(other))).await;
    let options = ExecuteOptions::default().session(fork.clone());
    let handle = other.execute(agent.erased(), "And now?".into(), options).await.unwrap();
    assert_eq!(ended(handle).await.status, RunStatus::Completed);
    assert_eq!(log_of(harness, &session()).await, before, "the original is as it was");
    let more = [notes("a"), notes("b"), Reply::text("Noted."), Reply::text("More.")];
    let more = harness.boot(World::new(ScriptedLlm::new(more))).await;
    assert_eq!(run(&*more, &agent, "More!").await.status, RunStatus::Completed);

    let (ours, theirs) = (fold_of(harness, &fork).await, fold(harness).await);
    assert_eq!(ours.state()["notes"], json!(["a", "c"]));
    assert_eq!(theirs.state()["notes"], json!(["a", "b"]));
    expect![[r#"
        session teller state={"notes":[],"last":""}
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 note({"word":"a"})
          result 1.0 "a" state=[{"op":"add","path":"/notes/-","value":"a"}]
        step 1 closed
        forked from story
        run Continue
        user "And now?"
        step 2 reply ToolUse in=10 out=5
          call 2.0 note({"word":"c"})
          result 2.0 "c" state=[{"op":"add","path":"/notes/-","value":"c"}]
        step 2 closed
        step 3 reply EndTurn in=10 out=5 "Otherwise."
        step 3 closed
        end completed "Otherwise."
    "#]]
    .assert_eq(&log_of(harness, &fork).await);
    // What is shared ran once; the same call of each has a key of its own.
    assert_eq!(words(&trace), "a b c");
    let keys: std::collections::BTreeSet<_> =
        trace.lock().unwrap().iter().map(|(_, key)| key.clone()).collect();
    assert_eq!(keys.len(), 3);
    // What was paid for in the original is not paid for twice.
    assert_eq!((ours.usage().input_tokens, ours.tool_calls()), (20, 1));
    assert_eq!((theirs.usage().input_tokens, theirs.tool_calls()), (40, 2));
    assert_eq!((ours.tree_usage().steps, theirs.tree_usage().steps), (2, 4));
}

/// From every checkpoint, and at the end without asking the model again.
pub async fn a_fork_with_the_same_answers_tells_the_same_story(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let executor = harness.boot(World::new(script())).await;
    run(&*executor, &agent, "go").await;
    let original = fold(harness).await;
    let at = checkpoints(harness).await;
    assert_eq!(at.len(), 3);
    for (index, ran) in at.iter().zip(["a b b", "a b b", "a b b"]) {
        let llm = script();
        let again = harness.boot(World::new(llm.clone())).await;
        let fork = forked(&*again, *index, &format!("fork-{index}")).await;
        let handle = again.resume(agent.erased(), &fork, ResumeOptions::default()).await.unwrap();
        let result = ended(handle).await;
        assert_eq!(result.status, RunStatus::Completed);
        assert_eq!(result.output.unwrap().text(), "\"Noted.\"");
        let fork = fold_of(harness, &fork).await;
        assert_eq!(transcript(&fork), transcript(&original), "forked at {index}");
        assert_eq!(fork.state(), original.state());
        assert_eq!(words(&trace), ran);
        let left = at.iter().filter(|it| *it > index).count();
        assert_eq!(llm.seen().len(), left, "forked at {index}");
    }
    // A fork of a fork, without a version: the last checkpoint.
    let options = ForkOptions::default().session("again").tag("of", "a fork");
    let from = SessionId::from(format!("fork-{}", at[0]));
    let again = executor.fork(&from, options).await.unwrap();
    let again = fold_of(harness, &again).await;
    assert_eq!(transcript(&again), transcript(&original));
    assert_eq!((again.forked().unwrap().session.clone(), &*again.tags()["of"]), (from, "a fork"));
}

/// A watcher of one sees nothing of the other.
pub async fn the_stream_of_a_fork_is_its_own(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let executor = harness.boot(World::new(script())).await;
    let original = begin(&*executor, &agent, "go").await;
    within(original.result()).await.unwrap();
    let before = chunks(&original).await;
    let fork = forked(&*executor, checkpoints(harness).await[1], "fork").await;
    // What there is to see of a fork that rests: that it does.
    let rests = chunks(&executor.handle(&fork).await.unwrap()).await;
    assert_eq!(normalise::stream(&rests), "run_interrupted None\n");
    let handle = executor.resume(agent.erased(), &fork, ResumeOptions::default()).await.unwrap();
    within(handle.result()).await.unwrap();
    expect![[r#"
        text Noted.
        checkpoint
        output "Noted."
        run_ended completed
    "#]]
    .assert_eq(&normalise::stream(&chunks(&handle).await));
    assert_eq!(normalise::stream(&chunks(&original).await), normalise::stream(&before));
}

/// Whoever dies when the fork is written and nobody knows of it leaves a session like any other.
pub async fn a_fork_whose_maker_died_is_there(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let gate = Gate::new();
    let store = FaultStore::new(harness.store()).on("forked", Fault::HoldAfter(gate.clone()));
    let executor = harness.boot(World::new(script()).on(store)).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await[0];
    {
        let from = session();
        let making = executor.fork(&from, ForkOptions::default().at(at).session("fork"));
        let mut making = std::pin::pin!(making);
        tokio::select! {
            made = &mut making => panic!("it is held: {made:?}"),
            () = gate.reached() => {}
        }
    }
    harness.kill().await;
    let executor = harness.boot(World::new(script())).await;
    let again = executor.fork(&session(), ForkOptions::default().at(at).session("fork")).await;
    assert_eq!(again.unwrap_err().code(), ErrorCode::SessionExists);
    let fork = SessionId::from("fork");
    let handle = executor.resume(agent.erased(), &fork, ResumeOptions::default()).await.unwrap();
    assert_eq!(ended(handle).await.status, RunStatus::Completed);
    assert_eq!(transcript(&fold_of(harness, &fork).await), transcript(&fold(harness).await));
}

/// An answer that is lost is asked for again; the fork is made once.
pub async fn a_fork_whose_answer_is_lost_is_made_once(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let store = FaultStore::new(harness.store())
        .on("forked", Fault::LoseReply)
        .on("forked", Fault::FailBefore);
    let executor = harness.boot(World::new(script()).on(store)).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await;
    let one = forked(&*executor, at[0], "one").await;
    let two = forked(&*executor, at[1], "two").await;
    for (fork, at) in [(one, at[0]), (two, at[1])] {
        assert_eq!(fold_of(harness, &fork).await.position().version, at + 1);
    }
}

/// Conversation and state are what they were; the log keeps all, numbers and costs stay.
pub async fn a_session_goes_back_to_a_checkpoint_and_on(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let executor = harness.boot(World::new(script())).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await[0];
    let other = ScriptedLlm::new([notes("never"), notes("c"), Reply::text("Otherwise.")]);
    let executor = harness.boot(World::new(other)).await;
    let result = ended(rewound(&*executor, &agent, back_to(at)).await).await;
    assert_eq!(result.output.unwrap().text(), "\"Otherwise.\"");
    let fold = fold(harness).await;
    assert_eq!(fold.state()["notes"], json!(["a", "c"]));
    assert_eq!(fold.usage().input_tokens, 50);
    assert_eq!(fold.tool_calls(), 3);
    let steps: Vec<_> = fold.checkpoints().iter().map(|it| it.step).collect();
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
    // What it went back behind is no place to go to, but a fork may still begin there.
    let gone = at + 3;
    let code = executor.resume(agent.erased(), &session(), back_to(gone)).await.unwrap_err().code();
    assert_eq!(code, ErrorCode::CheckpointNotFound);
    let fork = fold_of(harness, &forked(&*executor, gone, "fork").await).await;
    assert_eq!(fork.state()["notes"], json!(["a", "b"]));
}

/// A message begins another turn there; without one, a step that ended the turn ends it again.
pub async fn a_session_goes_back_and_on_with_a_message(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let llm = script();
    let executor = harness.boot(World::new(llm.clone())).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await;
    let result = ended(rewound(&*executor, &agent, back_to(at[2])).await).await;
    assert_eq!(result.output.unwrap().text(), "\"Noted.\"");
    assert_eq!(llm.seen().len(), 3, "nobody was asked again");
    let message = back_to(at[1]).message("Stop here.");
    let result = ended(rewound(&*executor, &agent, message).await).await;
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
    assert_eq!(words(&trace), "a b");
}

/// However it ended; what it was about to do, and whom it waited for, is given up.
pub async fn a_failed_aborted_or_waiting_session_goes_back(harness: &impl RuntimeHarness) {
    let ask = Tool::client::<Word>("ask", "Asks a person.");
    let trace = Trace::default();
    let agent = teller().state::<Notes>().tool(note(&trace)).tool(ask).build().unwrap();
    let asks = || Reply::tool_call("ask", json!({"word": "?"}));
    let llm = ScriptedLlm::new([notes("a"), asks()]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.status, RunStatus::SuspendedClientTool);
    let at = checkpoints(harness).await[0];

    let llm = ScriptedLlm::new([notes("a"), Reply::fails(ErrorCode::ProviderRejected)]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let result = ended(rewound(&*executor, &agent, back_to(at)).await).await;
    assert_eq!(result.status, RunStatus::Failed);
    let late = Submission::result("2.0", &json!({"word": "!"})).unwrap();
    let late = executor.submit_tool_result(&session(), late).await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::CallNotFound);
    assert_eq!(executor.pending_calls(&session()).await.unwrap(), []);

    let llm = ScriptedLlm::new([notes("a"), asks()]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let result = ended(rewound(&*executor, &agent, back_to(at)).await).await;
    assert_eq!(result.status, RunStatus::SuspendedClientTool);
    executor.abort(&session(), None).await.unwrap();
    assert_eq!(fold(harness).await.status(), SessionStatus::Aborted);

    let llm = ScriptedLlm::new([notes("a"), Reply::text("Done.")]);
    let executor = harness.boot(World::new(llm)).await;
    let result = ended(rewound(&*executor, &agent, back_to(at)).await).await;
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

/// What a dead process had begun is given up as well.
pub async fn a_dead_session_goes_back(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let gate = Gate::new();
    let llm = ScriptedLlm::new([notes("a"), notes("b"), Reply::text("Noted.").at_gate(&gate)]);
    let executor = harness.boot(World::new(llm).short_lease()).await;
    begin(&*executor, &agent, "go").await;
    gate.reached().await;
    let at = checkpoints(harness).await[0];
    let early = executor.resume(agent.erased(), &session(), back_to(at)).await.unwrap_err();
    assert_eq!(early.code(), ErrorCode::AlreadyRunning, "a live run does not go back");
    harness.kill().await;
    let executor = harness.boot(World::new(script())).await;
    let options = back_to(at).wait(std::time::Duration::from_secs(60));
    assert_eq!(
        ended(rewound(&*executor, &agent, options).await).await.status,
        RunStatus::Completed
    );
    let fold = fold(harness).await;
    assert_eq!(fold.state()["notes"], json!(["a", "b"]));
    let steps: Vec<_> = fold.checkpoints().iter().map(|it| it.step).collect();
    assert_eq!((steps, words(&trace)), (vec![1, 3, 4], "a b b".to_owned()));
}

/// The second process is not told of what the first one went back behind.
pub async fn a_restart_after_going_back_goes_on_from_there(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let executor = harness.boot(World::new(script())).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await[0];
    harness.kill().await;
    let gate = Gate::new();
    let held = ScriptedLlm::new([notes("a"), notes("c"), Reply::text("Now.").at_gate(&gate)]);
    let executor = harness.boot(World::new(held).short_lease()).await;
    rewound(&*executor, &agent, back_to(at)).await;
    gate.reached().await;
    harness.kill().await;
    let llm = ScriptedLlm::new([notes("a"), notes("c"), Reply::text("Now.")]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(ended(handle).await.output.unwrap().text(), "\"Now.\"");
    assert_eq!(words(&trace), "a b c");
    assert_eq!(fold(harness).await.state()["notes"], json!(["a", "c"]));
}

/// Of many that go back at once, one does.
pub async fn of_many_that_go_back_exactly_one_does(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let executor = harness.boot(World::new(script())).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await[0];
    let last = fold(harness).await.last_run().unwrap().id.clone();
    let mut executors = Vec::new();
    for _ in 0..6 {
        executors.push(harness.boot(World::new(script())).await);
    }
    let tries = executors.iter().map(|one| async {
        one.resume(agent.erased(), &session(), back_to(at).after(last.clone())).await
    });
    let tried = futures_util::future::join_all(tries).await;
    let (won, lost): (Vec<_>, Vec<_>) = tried.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 5));
    for error in lost.into_iter().filter_map(Result::err) {
        let told = [ErrorCode::AlreadyResumed, ErrorCode::AlreadyRunning];
        assert!(told.contains(&error.code()), "{error}");
    }
    for handle in won.into_iter().filter_map(Result::ok) {
        assert_eq!(ended(handle).await.status, RunStatus::Completed);
    }
    let log = load_events(&*harness.store(), &session(), 0).await.unwrap();
    assert_eq!(log.iter().filter(|it| matches!(it.event, Event::Rewound { .. })).count(), 1);
}

/// Each with its own code, and nothing is written.
pub async fn where_nobody_can_go_is_refused(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = scribe(&trace);
    let executor = harness.boot(World::new(script())).await;
    run(&*executor, &agent, "go").await;
    let (before, at) = (log_of(harness, &session()).await, checkpoints(harness).await[0]);
    let fork = async |from: &str, options| executor.fork(&from.into(), options).await;
    let options = ForkOptions::default;
    let codes = [
        fork(S, options().at(at + 1)).await.unwrap_err().code(),
        fork(S, options().at(0)).await.unwrap_err().code(),
        fork(S, options().at(1000)).await.unwrap_err().code(),
        fork("nobody", options()).await.unwrap_err().code(),
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
        executor.resume(agent.erased(), &session(), options).await.unwrap_err().code()
    };
    assert_eq!(back(back_to(at + 1)).await, ErrorCode::CheckpointNotFound);
    assert_eq!(back(back_to(at).after("r-other")).await, ErrorCode::AlreadyResumed);
    let of_another = executor.resume(another.erased(), &session(), back_to(at)).await;
    assert_eq!(of_another.unwrap_err().code(), ErrorCode::AgentMismatch);
    assert_eq!(log_of(harness, &session()).await, before);
}

/// Behind its beginning lies what it was begun for. Once it is done, or aborted, one may go back.
pub async fn nobody_goes_back_while_a_child_is_open(harness: &impl RuntimeHarness) {
    let ask = Tool::client::<Word>("ask", "Asks a person.");
    let helper = Agent::builder("helper").description("Asks.").system_prompt("x").tool(ask);
    let helper = helper.model("scripted").output::<Report>().build().unwrap();
    let trace = Trace::default();
    let agent = teller().state::<Notes>().tool(note(&trace)).sub_agent(&helper).build().unwrap();
    let call = Reply::tool_call("subagent__helper", json!({"message": "find out"}));
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([notes("a"), call]))
        .agent("helper", ScriptedLlm::new([Reply::tool_call("ask", json!({"word": "?"}))]));
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.status, RunStatus::SuspendedAwaitingChildren);
    let at = checkpoints(harness).await[0];
    let early = executor.resume(agent.erased(), &session(), back_to(at)).await.unwrap_err();
    assert_eq!(early.code(), ErrorCode::ChildrenOpen);
    // A fork begins where no child was open, and has none.
    let fork = fold_of(harness, &forked(&*executor, at, "fork").await).await;
    assert_eq!(fork.open_children().count(), 0);
    executor.abort(&session(), None).await.unwrap();
    let llm = ScriptedLlm::new([notes("a"), Reply::text("Without help.")]);
    let executor = harness.boot(World::new(llm)).await;
    let result = ended(rewound(&*executor, &agent, back_to(at)).await).await;
    assert_eq!(result.output.unwrap().text(), "\"Without help.\"");
}

/// A child's session can be forked like any other; the fork is nobody's child.
pub async fn a_fork_of_a_child_is_a_root(harness: &impl RuntimeHarness) {
    let helper = Agent::builder("helper").description("Finds out.").system_prompt("x");
    let trace = Trace::default();
    let helper = helper.model("scripted").state::<Notes>().tool(note(&trace));
    let helper = helper.output::<Report>().build().unwrap();
    let agent = teller().sub_agent(&helper).build().unwrap();
    let call = Reply::tool_call("subagent__helper", json!({"message": "find out"}));
    let report = || Reply::finish(json!({"answer": "yes", "score": 1}));
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([call, Reply::text("So.")]))
        .agent("helper", ScriptedLlm::new([notes("a"), report()]));
    let executor = harness.boot(World::new(llm)).await;
    run(&*executor, &agent, "go").await;
    let child = SessionId::of_call(&S.into(), &"1.0".into());
    let first = fold_of(harness, &child).await.checkpoints()[0].version;
    let options = ForkOptions::default().at(first).session("fork");
    let fork = executor.fork(&child, options).await.unwrap();
    let rests = fold_of(harness, &fork).await;
    assert_eq!((rests.parent(), rests.root()), (None, &fork));
    let handle = executor.resume(helper.erased(), &fork, ResumeOptions::default()).await.unwrap();
    assert_eq!(ended(handle).await.status, RunStatus::Completed);
    assert_eq!(words(&trace), "a");
    let head = harness.store().head(&fork).await.unwrap().unwrap();
    assert_eq!((head.created.parent, head.created.root), (None, fork));
}
