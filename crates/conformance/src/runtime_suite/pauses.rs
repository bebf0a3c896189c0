//! Scenarios for replies that their provider paused: the next model call sends the reply back and continues it.

use expect_test::expect;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::json::Json;
use helix_agents_core::message::UserMessage;
use helix_agents_core::step::StopReason;
use helix_agents_test::{Gate, Part, Reply, ScriptedLlm};

use super::support::{
    Report, S, check_log, check_stream, check_transcript, completes, fold, killed_at, report,
    resume, run, shout, start_run, teller, word,
};
use super::{RuntimeHarness, World};
use crate::normalise;

/// A call of a tool that the provider runs, written as no JSON writer would write it.
const SEARCH: &str = r#"{ "type":"server_tool_use", "id":"srv_1", "input":{"q":"caf\u00e9"} }"#;

/// Returns a reply that was paused in a search of the provider.
fn searching() -> Reply {
    let search = Json::parse(SEARCH).unwrap();
    Reply::of_parts([Part::text("Searching."), Part::opaque(search)])
        .with_stop_reason(StopReason::Pause)
}

fn script() -> [Reply; 2] {
    [searching(), Reply::text("Found.")]
}

/// A paused reply does not end the turn. The next request ends with the reply unchanged, and the model's continuation
/// is the answer.
pub async fn a_paused_reply_is_sent_back_and_continued(harness: &impl RuntimeHarness) {
    let llm = ScriptedLlm::new(script());
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &teller().build().unwrap(), "go").await;
    let result = completes(&handle).await;
    assert_eq!(result.output.unwrap().text(), "\"Found.\"");
    expect![[r#"
        user "go"
        assistant Some("Searching.")
          layout of scripted scripted
          part text "Searching."
          part opaque { "type":"server_tool_use", "id":"srv_1", "input":{"q":"caf\u00e9"} }
    "#]]
    .assert_eq(&normalise::transcript(&llm.seen()[1].messages));
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "go"
            step 1 reply Pause in=10 out=5 "Searching."
              layout of scripted scripted
              part text "Searching."
              part opaque { "type":"server_tool_use", "id":"srv_1", "input":{"q":"caf\u00e9"} }
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "Found."
            step 2 closed
            end completed "Found."
        "#]],
    )
    .await;
    check_stream(
        &handle,
        &expect![[r#"
            run_started
            text Searching.
            checkpoint
            text Found.
            checkpoint
            output "Found."
            run_ended completed
        "#]],
    )
    .await;
}

/// The tool calls of a paused reply run first. The next request has the reply and their results.
pub async fn a_reply_that_is_paused_with_calls_is_continued_with_their_results(
    harness: &impl RuntimeHarness,
) {
    let paused = Reply::tool_call("shout", word("a")).with_stop_reason(StopReason::Pause);
    let llm = ScriptedLlm::new([paused, Reply::text("Found.")]);
    let agent = teller().tool(shout()).build().unwrap();
    let executor = harness.boot(World::new(llm.clone())).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    assert_eq!(llm.calls(), 2);
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant None shout({"word":"a"})
            tool shout "A"
            assistant Some("Found.")
        "#]],
    )
    .await;
}

/// An agent with an output type gets no correction for a paused reply: the model may still return the output.
pub async fn a_paused_reply_is_not_corrected(harness: &impl RuntimeHarness) {
    for agent in [
        teller().output::<Report>(),
        teller().output::<Report>().max_steps(2).completion_retries(0),
    ] {
        let llm = ScriptedLlm::new([searching(), report(), searching(), report()]);
        let executor = harness.boot(World::new(llm.clone())).await;
        let agent = agent.build().unwrap();
        completes(&start_run(&*executor, &agent, "go").await).await;
        assert_eq!(fold(harness).await.corrections(), 0);
    }
}

/// Paused replies count as steps. A run that reaches the step limit with one fails and keeps all replies. A resume
/// continues the last one.
pub async fn paused_replies_count_against_the_step_limit(harness: &impl RuntimeHarness) {
    let replies = [Reply::paused("One."), Reply::paused("Two."), Reply::text("Three.")];
    let llm = ScriptedLlm::new(replies);
    let agent = teller().max_steps(2).build().unwrap();
    let executor = harness.boot(World::new(llm.clone())).await;
    let failed = run(&*executor, &agent, "go").await;
    assert!(failed.error.unwrap().is(ErrorCode::StepLimit));
    assert_eq!(llm.calls(), 2);
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant Some("One.")
            assistant Some("Two.")
            assistant Some("Three.")
        "#]],
    )
    .await;
}

/// A message that arrives before a reply is paused does not separate the reply from its continuation. It enters the
/// transcript after the continuation.
pub async fn a_message_waits_until_a_paused_reply_is_continued(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let replies = [searching().at_gate(&gate), Reply::text("Found."), Reply::text("At once.")];
    let llm = ScriptedLlm::new(replies);
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &teller().build().unwrap(), "go").await;
    gate.reached().await;
    executor.send_message(&S.into(), UserMessage::new("Hurry!")).await.unwrap();
    gate.open();
    completes(&handle).await;
    assert_eq!(llm.seen()[1].messages.len(), 2, "the paused reply is the last message");
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "go"
            queued "Hurry!"
            step 1 reply Pause in=10 out=5 "Searching."
              layout of scripted scripted
              part text "Searching."
              part opaque { "type":"server_tool_use", "id":"srv_1", "input":{"q":"caf\u00e9"} }
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "Found."
            step 2 closed
            took 1 messages
            step 3 reply EndTurn in=10 out=5 "At once."
            step 3 closed
            end completed "At once."
        "#]],
    )
    .await;
}

/// A process crashes while the model continues a paused reply. The next process sends the reply back unchanged, and the
/// transcript contains it once.
pub async fn a_process_that_takes_over_continues_a_paused_reply(harness: &impl RuntimeHarness) {
    let (agent, gate) = (teller().build().unwrap(), Gate::new());
    let held = ScriptedLlm::new([searching(), Reply::text("Lost.").at_gate(&gate)]);
    killed_at(harness, World::new(held), &agent, &gate).await;
    let llm = ScriptedLlm::new(script());
    let executor = harness.boot(World::new(llm.clone())).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    assert_eq!(llm.calls(), 1, "the paused reply was recorded");
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant Some("Searching.")
              layout of scripted scripted
              part text "Searching."
              part opaque { "type":"server_tool_use", "id":"srv_1", "input":{"q":"caf\u00e9"} }
            assistant Some("Found.")
        "#]],
    )
    .await;
}
