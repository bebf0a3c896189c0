//! Scenarios for humans in the loop: approvals, client tools, deadlines, and who may answer.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::executor::{AgentExecutor, Resumable, ResumeOptions, Resumption, Submitted};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, Submission, WAIT_USAGE, load_events};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Reply, ScriptedLlm, within};
use serde_json::json;

use super::support::{
    S, Word, check_log, check_stream, check_transcript, completes, end, fold, options, resume,
    resume_to_end, run, shout, start_run, teller, until_past, word,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};

/// Returns a payment tool, which needs an approval.
fn pay() -> Tool {
    Tool::function("pay", "Pays.", |input: Word, cx: ToolContext| async move {
        Ok::<_, ToolError>(format!("paid {} as {}", input.word, cx.idempotency_key().len()))
    })
    .requires_approval()
    .editable()
}

/// Returns a client tool, which the caller executes.
fn ask() -> Tool {
    Tool::client::<Word>("ask", "Asks a person.").output_schema::<Word>()
}

fn desk() -> Agent {
    teller().tool(pay()).tool(ask()).tool(shout()).build().unwrap()
}

/// The model pays, asks and shouts in one step, and then replies with text.
fn script() -> ScriptedLlm {
    ScriptedLlm::new([
        Reply::calls([("pay", word("rent")), ("ask", word("colour")), ("shout", word("hey"))]),
        Reply::text("Done."),
    ])
}

fn session() -> SessionId {
    SessionId::from(S)
}

async fn submit(executor: &dyn AgentExecutor, submission: Submission) -> Result<Submitted> {
    executor.submit_tool_result(&session(), submission).await
}

async fn refused(executor: &dyn AgentExecutor, submission: Submission) -> ErrorCode {
    submit(executor, submission).await.unwrap_err().code()
}

/// Calls that need no answer run at once. The run is suspended until the other calls are answered. Other processes can
/// accept the answers and continue the run.
pub async fn a_step_waits_for_answers_and_continues_with_them(harness: &impl RuntimeHarness) {
    let executor = harness.boot(World::new(script())).await;
    let agent = desk();
    let handle = start_run(&*executor, &agent, "Pay and ask.").await;
    let result = end(&handle).await;
    assert_eq!(result.status, RunStatus::SuspendedClientTool);
    let waits = result.suspended.unwrap();
    assert_eq!((waits.step, waits.children.len()), (1, 0));
    assert_eq!(
        waits.calls.iter().map(|call| call.call.as_str()).collect::<Vec<_>>(),
        ["1.0", "1.1"]
    );
    assert_eq!(executor.can_resume(&session()).await.unwrap(), Resumable::Waiting);
    assert_eq!(resume(&*executor, &agent).await.unwrap_err().code(), ErrorCode::Suspended);
    let another = executor.execute(agent.erased(), "And?".into(), options()).await;
    assert_eq!(another.unwrap_err().code(), ErrorCode::Suspended);
    check_stream(
        &handle,
        &expect![[r#"
            run_started
            tool_arg 0 pay
            args {"word":"rent"}
            tool_arg 1 ask
            args {"word":"colour"}
            tool_arg 2 shout
            args {"word":"hey"}
            tool_start 1.2 shout {"word":"hey"}
            tool_end 1.2 success=true "HEY"
            approval_request 1.0 pay {"word":"rent"} editable
            tool_start 1.1 ask {"word":"colour"}
            run_suspended 1.0 1.1
        "#]],
    )
    .await;

    // Another process accepts the answers, and a third one continues.
    harness.kill().await;
    let executor = harness.boot(World::new(script())).await;
    let pending = executor.pending_calls(&session()).await.unwrap();
    let seen: Vec<_> =
        pending.iter().map(|call| (&*call.pending.tool, call.arguments.text())).collect();
    assert_eq!(seen, [("pay", r#"{"word":"rent"}"#), ("ask", r#"{"word":"colour"}"#)]);
    let digest = pending[0].pending.digest.clone();
    submit(&*executor, Submission::approve("1.0").digest(digest).by("ann")).await.unwrap();
    submit(&*executor, Submission::result("1.1", &word("blue")).unwrap()).await.unwrap();
    assert_eq!(executor.can_resume(&session()).await.unwrap(), Resumable::Yes);
    harness.kill().await;
    let executor = harness.boot(World::new(script())).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    let result = end(&handle).await;
    assert_eq!(result.status, RunStatus::Completed);
    check_stream(
        &handle,
        &expect![[r#"
            tool_end 1.1 success=true {"word":"blue"}
            tool_start 1.0 pay {"word":"rent"}
            tool_end 1.0 success=true "paid rent as 46"
            checkpoint
            text Done.
            checkpoint
            output "Done."
            run_ended completed
        "#]],
    )
    .await;
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "Pay and ask."
            step 1 reply ToolUse in=10 out=5
              call 1.0 pay({"word":"rent"})
              call 1.1 ask({"word":"colour"})
              call 1.2 shout({"word":"hey"})
            end suspended 1.0 pay Approval { editable: true } 1.1 ask Client
            submitted 1.0 approved
            submitted 1.1 result {"word":"blue"}
            run Resume
            usage client_tool_wait_ms pay success=true
            usage client_tool_wait_ms ask success=true
              result 1.0 "paid rent as 46"
              result 1.1 {"word":"blue"}
              result 1.2 "HEY"
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "Done."
            step 2 closed
            end completed "Done."
        "#]],
    )
    .await;
    let session = fold(harness).await;
    let events = load_events(&*harness.store(), session.id(), 0).await.unwrap();
    let at = |what: &str| {
        let events =
            events.iter().filter(|recorded| format!("{:?}", recorded.event).contains(what));
        events.map(|recorded| recorded.at.0).collect::<Vec<_>>()
    };
    let (asked, answered) = (at("Suspended")[0], at("Submitted"));
    for (tool, answered) in [("pay", answered[0]), ("ask", answered[1])] {
        let waited = session.usage().custom[WAIT_USAGE][tool];
        let between = i32::try_from(answered - asked).unwrap();
        assert_eq!(waited, f64::from(between), "{tool}");
    }
}

/// A denied call is not executed and gets an error as its result. A call that was approved with edited arguments runs
/// with these arguments.
pub async fn a_denied_call_is_not_run_and_an_edited_one_runs_as_edited(
    harness: &impl RuntimeHarness,
) {
    let replies =
        [Reply::calls([("pay", word("rent")), ("pay", word("wine"))]), Reply::text("Well.")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let agent = desk();
    run(&*executor, &agent, "Pay both.").await;
    let no = Submission::deny("1.1", Some("no wine".to_owned()));
    submit(&*executor, no).await.unwrap();
    let edited = Submission::approve_edited("1.0", &word("half the rent")).unwrap();
    submit(&*executor, edited).await.unwrap();
    let handle = resume(&*executor, &agent).await.unwrap();
    completes(&handle).await;
    check_stream(
        &handle,
        &expect![[r#"
        tool_error 1.1 tool_denied: Tool call pay was not approved by the user: no wine
        tool_end 1.1 success=false
        tool_start 1.0 pay {"word":"half the rent"}
        tool_end 1.0 success=true "paid half the rent as 46"
        checkpoint
        text Well.
        checkpoint
        output "Well."
        run_ended completed
    "#]],
    )
    .await;
    check_transcript(
        harness,
        &expect![[r#"
            user "Pay both."
            assistant None pay({"word":"rent"}) pay({"word":"wine"})
            tool pay "paid half the rent as 46"
            tool pay {"error":"Tool call pay was not approved by the user: no wine"}
            assistant Some("Well.")
        "#]],
    )
    .await;
}

/// If only some pending calls are answered, a resume processes these answers. The run is then suspended again until the
/// other calls are answered.
pub async fn a_partly_answered_step_suspends_again_on_the_rest(harness: &impl RuntimeHarness) {
    let executor = harness.boot(World::new(script())).await;
    let agent = desk();
    run(&*executor, &agent, "Pay and ask.").await;
    submit(&*executor, Submission::result("1.1", &word("blue")).unwrap()).await.unwrap();
    let result = resume_to_end(&*executor, &agent).await;
    assert_eq!(result.status, RunStatus::SuspendedStepPartial);
    assert_eq!(result.suspended.unwrap().calls.len(), 1);
    submit(&*executor, Submission::approve("1.0")).await.unwrap();
    assert_eq!(resume_to_end(&*executor, &agent).await.status, RunStatus::Completed);
}

/// A call that is not answered before its deadline, by the store's clock, gets an error when the session is resumed.
/// Later answers are refused.
pub async fn an_unanswered_call_fails_at_its_deadline_and_late_answers_are_refused(
    harness: &impl RuntimeHarness,
) {
    let replies = [Reply::tool_call("ask", word("colour")), Reply::text("No answer.")];
    let world = || World::new(ScriptedLlm::new(replies.clone()));
    let executor = harness.boot(world()).await;
    let asks = ask().deadline(Duration::from_millis(20));
    let agent = teller().tool(asks).build().unwrap();
    let result = run(&*executor, &agent, "Ask.").await;
    let deadline = result.suspended.unwrap().deadline().unwrap();
    harness.kill().await;
    until_past(harness, deadline).await;
    let executor = harness.boot(world()).await;
    let late = || Submission::result("1.0", &word("blue")).unwrap();
    assert_eq!(refused(&*executor, late()).await, ErrorCode::AnswerExpired);
    let handle = resume(&*executor, &agent).await.unwrap();
    completes(&handle).await;
    assert_eq!(refused(&*executor, late()).await, ErrorCode::AnswerExpired);
    check_stream(
        &handle,
        &expect![[r#"
        tool_error 1.0 tool_unanswered: the result of the call was not submitted in time
        tool_end 1.0 success=false
        checkpoint
        text No answer.
        checkpoint
        output "No answer."
        run_ended completed
    "#]],
    )
    .await;
    check_transcript(
        harness,
        &expect![[r#"
        user "Ask."
        assistant None ask({"word":"colour"})
        tool ask {"error":"the result of the call was not submitted in time"}
        assistant Some("No answer.")
    "#]],
    )
    .await;
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "Ask."
            step 1 reply ToolUse in=10 out=5
              call 1.0 ask({"word":"colour"})
            end suspended 1.0 ask Client with a deadline
            run Resume
            usage client_tool_wait_ms ask success=false
              result 1.0 error tool_unanswered: the result of the call was not submitted in time
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "No answer."
            step 2 closed
            end completed "No answer."
        "#]],
    )
    .await;
}

/// Submitted results enter the transcript in call order, regardless of the order in which they were submitted. A
/// submitted failure is an error result.
pub async fn answers_enter_in_call_order_and_a_failure_as_one(harness: &impl RuntimeHarness) {
    let calls = ["a", "b", "c"].map(|text| ("ask", word(text)));
    let script = ScriptedLlm::new([Reply::calls(calls), Reply::text("Done.")]);
    let executor = harness.boot(World::new(script)).await;
    let agent = desk();
    run(&*executor, &agent, "Ask.").await;
    submit(&*executor, Submission::result("1.2", &word("third")).unwrap()).await.unwrap();
    submit(&*executor, Submission::result("1.0", &word("first")).unwrap()).await.unwrap();
    submit(&*executor, Submission::error("1.1", "no answer")).await.unwrap();
    let handle = resume(&*executor, &agent).await.unwrap();
    completes(&handle).await;
    check_stream(
        &handle,
        &expect![[r#"
        tool_end 1.0 success=true {"word":"first"}
        tool_error 1.1 tool_failed: no answer
        tool_end 1.1 success=false
        tool_end 1.2 success=true {"word":"third"}
        checkpoint
        text Done.
        checkpoint
        output "Done."
        run_ended completed
    "#]],
    )
    .await;
    check_transcript(
        harness,
        &expect![[r#"
        user "Ask."
        assistant None ask({"word":"a"}) ask({"word":"b"}) ask({"word":"c"})
        tool ask {"word":"first"}
        tool ask {"error":"no answer"}
        tool ask {"word":"third"}
        assistant Some("Done.")
    "#]],
    )
    .await;
}

/// An invalid answer is refused with the error code of its cause, and the call stays pending. Answers to an answered or
/// aborted call are refused too.
pub async fn every_wrong_answer_has_an_error_of_its_own(harness: &impl RuntimeHarness) {
    let executor = harness.boot(World::new(script()).registered(&desk())).await;
    let agent = desk();
    run(&*executor, &agent, "Pay and ask.").await;
    let result = |call: &str| Submission::result(call, &word("blue")).unwrap();
    for (submission, code) in [
        (result("1.0"), ErrorCode::AnswerWrongKind),
        (Submission::approve("1.1"), ErrorCode::AnswerWrongKind),
        (result("1.2"), ErrorCode::CallNotFound),
        (result("9.9"), ErrorCode::CallNotFound),
        (result("other#1.1"), ErrorCode::SessionNotFound),
        (Submission::result("1.1", &json!({"wort": 1})).unwrap(), ErrorCode::AnswerInvalid),
        (Submission::approve_edited("1.0", &json!([])).unwrap(), ErrorCode::AnswerInvalid),
        (Submission::approve("1.0").digest("of others"), ErrorCode::ArgumentsChanged),
    ] {
        let call = submission.call().to_string();
        assert_eq!(refused(&*executor, submission).await, code, "{call}");
    }
    let nowhere = executor.submit_tool_result(&"nowhere".into(), result("1.1")).await;
    assert_eq!(nowhere.unwrap_err().code(), ErrorCode::SessionNotFound);
    submit(&*executor, result("1.1").request("mine")).await.unwrap();
    submit(&*executor, result("1.1").request("mine")).await.unwrap();
    assert_eq!(refused(&*executor, result("1.1")).await, ErrorCode::AlreadyAnswered);
    executor.abort(&session(), None).await.unwrap();
    let late = Submission::approve("1.0");
    assert_eq!(refused(&*executor, late).await, ErrorCode::AnswerToAborted);
    assert_eq!(fold(harness).await.last_run().unwrap().status, RunStatus::Aborted);
}

/// The submission of an answer succeeds once the answer is recorded, even if the run cannot be resumed. The outcome of
/// the resume is reported separately.
pub async fn a_recorded_answer_is_reported_as_recorded(harness: &impl RuntimeHarness) {
    let agent = desk();
    let executor = harness.boot(World::new(script())).await;
    run(&*executor, &agent, "Pay and ask.").await;
    let blue = || Submission::result("1.1", &word("blue")).unwrap().request("mine");
    let refusing = FaultStore::new(harness.store())
        .with_fault("run_started", Fault::Refuse(ErrorCode::StoreFull))
        .with_fault("run_started", Fault::Refuse(ErrorCode::StoreFull));
    let world = || World::new(script()).registered(&agent).auto_resuming();
    let other = harness.boot(world().with_store(refusing)).await;
    for _ in 0..2 {
        let submitted = submit(&*other, blue()).await.unwrap();
        assert_eq!(submitted.session, session());
        let Resumption::Failed(error) = submitted.resumption else { panic!("{submitted:?}") };
        assert_eq!(error.code(), ErrorCode::StoreFull, "{error}");
    }
    let events = load_events(&*harness.store(), &session(), 0).await.unwrap();
    let answers = events.iter().filter(|recorded| recorded.event.name() == "submitted").count();
    assert_eq!(answers, 1, "it is recorded once");
    // Without `auto_resume` no run is resumed.
    let submitted = submit(&*executor, blue()).await.unwrap();
    assert!(matches!(submitted.resumption, Resumption::NotRequested), "{submitted:?}");
    // The run is not resumed without the agent either.
    let stranger = harness.boot(World::new(script()).auto_resuming()).await;
    let submitted = submit(&*stranger, blue()).await.unwrap();
    let Resumption::Failed(error) = submitted.resumption else { panic!("{submitted:?}") };
    assert_eq!(error.code(), ErrorCode::AgentNotFound);
    // The store works again.
    let submitted = submit(&*other, blue()).await.unwrap();
    let Resumption::Started(handle) = submitted.resumption else { panic!("{submitted:?}") };
    assert_eq!(end(&handle).await.status, RunStatus::SuspendedStepPartial);
    let submitted = submit(&*other, blue()).await.unwrap();
    assert!(matches!(submitted.resumption, Resumption::Waiting), "{submitted:?}");
    let submitted = submit(&*other, Submission::approve("1.0").request("yes")).await.unwrap();
    let Resumption::Started(handle) = submitted.resumption else { panic!("{submitted:?}") };
    completes(&handle).await;
    let submitted = submit(&*other, blue()).await.unwrap();
    assert!(matches!(submitted.resumption, Resumption::Ended), "{submitted:?}");
}

/// If ten answers to one call are submitted concurrently, one is accepted. The others are refused with
/// `already_answered`.
pub async fn one_of_ten_answers_is_accepted(harness: &impl RuntimeHarness) {
    let executor = harness.boot(World::new(script())).await;
    let agent = desk();
    run(&*executor, &agent, "Pay and ask.").await;
    let answers = (0..10).map(|number| {
        let executor = Arc::clone(&executor);
        tokio::spawn(async move {
            let by = format!("person {number}");
            let answer = Submission::result("1.1", &word(&by)).unwrap().by(by);
            executor.submit_tool_result(&session(), answer).await.map_err(|error| error.code())
        })
    });
    let mut taken = 0;
    for answer in answers.collect::<Vec<_>>() {
        match within(answer).await.unwrap() {
            Ok(_) => taken += 1,
            Err(code) => assert_eq!(code, ErrorCode::AlreadyAnswered),
        }
    }
    assert_eq!(taken, 1);
}

/// A message to a session whose call was answered enters the transcript after the step is complete. Providers would
/// refuse a transcript with a message in the middle of a step.
pub async fn a_message_to_an_answered_session_enters_when_the_step_is_done(
    harness: &impl RuntimeHarness,
) {
    let replies = [Reply::tool_call("pay", word("rent")), Reply::text("Both done.")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let agent = desk();
    run(&*executor, &agent, "Pay.").await;
    submit(&*executor, Submission::approve("1.0")).await.unwrap();
    let result = run(&*executor, &agent, "And then say so.").await;
    assert_eq!(result.status, RunStatus::Completed);
    check_transcript(
        harness,
        &expect![[r#"
            user "Pay."
            assistant None pay({"word":"rent"})
            tool pay "paid rent as 46"
            user "And then say so."
            assistant Some("Both done.")
        "#]],
    )
    .await;
}

/// If several callers resume an answered session concurrently, one of them starts a run. The approved call is executed
/// once.
pub async fn one_of_several_resumers_after_an_answer_runs(harness: &impl RuntimeHarness) {
    let executor = harness.boot(World::new(script())).await;
    let agent = desk();
    run(&*executor, &agent, "Pay and ask.").await;
    submit(&*executor, Submission::approve("1.0")).await.unwrap();
    submit(&*executor, Submission::result("1.1", &word("blue")).unwrap()).await.unwrap();
    let last = fold(harness).await.last_run().unwrap().id.clone();
    let again = (0..4).map(|_| {
        let (executor, agent, last) = (Arc::clone(&executor), agent.erased(), last.clone());
        tokio::spawn(async move {
            let options = ResumeOptions::default().after(last);
            executor.resume(agent, &session(), options).await.map_err(|error| error.code())
        })
    });
    let mut handles = Vec::new();
    for handle in again.collect::<Vec<_>>() {
        match within(handle).await.unwrap() {
            Ok(handle) => handles.push(handle),
            Err(code) => assert!(
                matches!(code, ErrorCode::AlreadyResumed | ErrorCode::AlreadyRunning),
                "{code:?}"
            ),
        }
    }
    assert_eq!(handles.len(), 1);
    assert_eq!(within(handles[0].result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(fold(harness).await.usage().tool_calls, 2, "pay and shout, once each");
}
