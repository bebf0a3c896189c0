//! Scenarios for forks, which start with the history of another session.

use expect_test::expect;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{ExecuteOptions, ForkOptions, Resumable, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::SessionStatus;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    Notes, S, Trace, asks, checkpoints, child, chunks, completes, end, fold, fold_of, forked,
    helper, log_of, noted, notes, report, run, scripts, start_run, teller, transcript,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};
use crate::normalise;

/// A fork and its original share their history up to the fork, and continue independently. Shared calls are not
/// executed again, and their usage counts only for the original.
pub async fn a_fork_and_its_original_run_independently(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let executor = harness.boot(World::new(noted())).await;
    run(&*executor, &agent, "go").await;
    let before = log_of(harness, &S.into()).await;
    let fork = forked(&*executor, checkpoints(harness).await[0], "fork").await;
    let rests = fold_of(harness, &fork).await;
    assert_eq!((rests.id(), rests.status()), (&fork, SessionStatus::Interrupted));
    assert_eq!(rests.forked().unwrap().session, S.into());
    assert_eq!(executor.can_resume(&fork).await.unwrap(), Resumable::Yes);
    let waits = executor.handle(&fork).await.unwrap();
    assert_eq!(end(&waits).await.status, RunStatus::Interrupted);

    let other = [notes("never"), notes("c"), Reply::text("Otherwise.")];
    let other = harness.boot(World::new(ScriptedLlm::new(other))).await;
    let options = ExecuteOptions::default().session(fork.clone());
    let handle = other.execute(agent.erased(), "And now?".into(), options).await.unwrap();
    completes(&handle).await;
    assert_eq!(log_of(harness, &S.into()).await, before, "the original is unchanged");
    let more = [notes("a"), notes("b"), Reply::text("Noted."), Reply::text("More.")];
    let more = harness.boot(World::new(ScriptedLlm::new(more))).await;
    completes(&start_run(&*more, &agent, "More!").await).await;

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
    // Shared calls ran once. The same later call of each session has a key of its own.
    assert_eq!(trace.words(), "a b c");
    let keys: std::collections::BTreeSet<_> = trace.keys().into_iter().collect();
    assert_eq!(keys.len(), 3);
    // Usage of the original is not counted again.
    assert_eq!((ours.usage().tokens.input_tokens, ours.usage().tool_calls), (20, 1));
    assert_eq!((theirs.usage().tokens.input_tokens, theirs.usage().tool_calls), (40, 2));
    assert_eq!((ours.tree_usage().steps, theirs.tree_usage().steps), (2, 4));
}

/// A fork at any checkpoint has the transcript of its original if it gets the same replies. A fork at the last
/// checkpoint does not call the model again.
pub async fn a_fork_with_the_same_answers_has_the_same_transcript(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let executor = harness.boot(World::new(noted())).await;
    run(&*executor, &agent, "go").await;
    let original = fold(harness).await;
    let at = checkpoints(harness).await;
    assert_eq!(at.len(), 3);
    for (index, ran) in at.iter().zip(["a b b", "a b b", "a b b"]) {
        let llm = noted();
        let again = harness.boot(World::new(llm.clone())).await;
        let fork = forked(&*again, *index, &format!("fork-{index}")).await;
        let handle = again.resume(agent.erased(), &fork, ResumeOptions::default()).await.unwrap();
        let result = end(&handle).await;
        assert_eq!(result.status, RunStatus::Completed);
        assert_eq!(result.output.unwrap().text(), "\"Noted.\"");
        let fork = fold_of(harness, &fork).await;
        assert_eq!(transcript(&fork), transcript(&original), "forked at {index}");
        assert_eq!(fork.state(), original.state());
        assert_eq!(trace.words(), ran);
        let left = at.iter().filter(|version| *version > index).count();
        assert_eq!(llm.seen().len(), left, "forked at {index}");
    }
    // A fork of a fork, without a version: the last checkpoint is used.
    let options = ForkOptions::default().session("again").tag("of", "a fork");
    let from = SessionId::from(format!("fork-{}", at[0]));
    let again = executor.fork(&from, options).await.unwrap();
    let again = fold_of(harness, &again).await;
    assert_eq!(transcript(&again), transcript(&original));
    assert_eq!((again.forked().unwrap().session.clone(), &*again.tags()["of"]), (from, "a fork"));
}

/// A fork has its own stream. Neither stream shows chunks of the other session.
pub async fn the_stream_of_a_fork_is_its_own(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let executor = harness.boot(World::new(noted())).await;
    let original = start_run(&*executor, &agent, "go").await;
    end(&original).await;
    let before = chunks(&original).await;
    let fork = forked(&*executor, checkpoints(harness).await[1], "fork").await;
    // The stream of an inactive fork shows only that it is interrupted.
    let rests = chunks(&executor.handle(&fork).await.unwrap()).await;
    assert_eq!(normalise::stream(&rests), "run_interrupted None\n");
    let handle = executor.resume(agent.erased(), &fork, ResumeOptions::default()).await.unwrap();
    end(&handle).await;
    expect![[r#"
        text Noted.
        checkpoint
        output "Noted."
        run_ended completed
    "#]]
    .assert_eq(&normalise::stream(&chunks(&handle).await));
    assert_eq!(normalise::stream(&chunks(&original).await), normalise::stream(&before));
}

/// A process crashes after a fork was written and before the caller gets the reply. The fork exists and can be resumed.
pub async fn a_fork_survives_the_crash_of_its_creator(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let gate = Gate::new();
    let store =
        FaultStore::new(harness.store()).with_fault("forked", Fault::HoldAfter(gate.clone()));
    let executor = harness.boot(World::new(noted()).with_store(store)).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await[0];
    {
        let from = SessionId::from(S);
        let making = executor.fork(&from, ForkOptions::default().checkpoint(at).session("fork"));
        let mut making = std::pin::pin!(making);
        tokio::select! {
            made = &mut making => panic!("it is held: {made:?}"),
            () = gate.reached() => {}
        }
    }
    harness.kill().await;
    let executor = harness.boot(World::new(noted())).await;
    let again =
        executor.fork(&S.into(), ForkOptions::default().checkpoint(at).session("fork")).await;
    assert_eq!(again.unwrap_err().code(), ErrorCode::SessionExists);
    let fork = SessionId::from("fork");
    let handle = executor.resume(agent.erased(), &fork, ResumeOptions::default()).await.unwrap();
    completes(&handle).await;
    assert_eq!(transcript(&fold_of(harness, &fork).await), transcript(&fold(harness).await));
}

/// If the reply to a fork is lost, or the request does not reach the store, the request is retried. The fork is created
/// once.
pub async fn a_fork_whose_answer_is_lost_is_made_once(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let agent = trace.scribe();
    let store = FaultStore::new(harness.store())
        .with_fault("forked", Fault::LoseReply)
        .with_fault("forked", Fault::FailBefore);
    let executor = harness.boot(World::new(noted()).with_store(store)).await;
    run(&*executor, &agent, "go").await;
    let at = checkpoints(harness).await;
    let one = forked(&*executor, at[0], "one").await;
    let two = forked(&*executor, at[1], "two").await;
    for (fork, at) in [(one, at[0]), (two, at[1])] {
        assert_eq!(fold_of(harness, &fork).await.position().version, at + 1);
    }
}

/// The session of a child can be forked like any other. The fork has no parent.
pub async fn a_fork_of_a_child_is_a_root(harness: &impl RuntimeHarness) {
    let trace = Trace::default();
    let helper = helper("helper").state::<Notes>().tool(trace.tool()).build().unwrap();
    let agent = teller().sub_agent(&helper).build().unwrap();
    let llm = scripts([asks(&["helper"]), Reply::text("So.")], [notes("a"), report()]);
    let executor = harness.boot(World::new(llm)).await;
    run(&*executor, &agent, "go").await;
    let child = child("1.0");
    let first = fold_of(harness, &child).await.checkpoints()[0].version;
    let options = ForkOptions::default().checkpoint(first).session("fork");
    let fork = executor.fork(&child, options).await.unwrap();
    let rests = fold_of(harness, &fork).await;
    assert_eq!((rests.parent(), rests.root()), (None, &fork));
    let handle = executor.resume(helper.erased(), &fork, ResumeOptions::default()).await.unwrap();
    completes(&handle).await;
    assert_eq!(trace.words(), "a");
    let head = harness.store().head(&fork).await.unwrap().unwrap();
    assert_eq!((head.created.parent, head.created.root), (None, fork));
}

/// A fork can use the checkpoints of its original up to the fork, but not later ones. A rewind of the fork does not
/// change the checkpoints of the original.
pub async fn checkpoints_are_a_sessions_own(harness: &impl RuntimeHarness) {
    let agent = Trace::default().scribe();
    let executor = harness.boot(World::new(noted())).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    let at = checkpoints(harness).await;
    let fork = forked(&*executor, at[1], "fork").await;
    let of = async |session: &SessionId| -> Vec<u64> {
        let fold = fold_of(harness, session).await;
        fold.checkpoints().iter().map(|checkpoint| checkpoint.version).collect()
    };
    assert_eq!(of(&fork).await, at[..2]);
    // The third checkpoint is the original's alone: the fork can neither rewind to it nor be forked there.
    let back = ResumeOptions::default().checkpoint(at[2]);
    let refused = executor.resume(agent.erased(), &fork, back).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::CheckpointNotFound);
    let refused = executor.fork(&fork, ForkOptions::default().checkpoint(at[2])).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::CheckpointNotFound);
    let back = ResumeOptions::default().checkpoint(at[0]);
    completes(&executor.resume(agent.erased(), &fork, back).await.unwrap()).await;
    assert_eq!(of(&S.into()).await, at, "the original keeps its checkpoints");
    assert_eq!(of(&fork).await[0], at[0]);
    assert!(!of(&fork).await.contains(&at[1]), "the fork was rewound before it");
}
