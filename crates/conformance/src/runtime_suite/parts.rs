//! Scenarios for replies whose provider needs its data back: every later request has the parts of such a reply in their
//! order, with the exact bytes of the data.

use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::ResumeOptions;
use helix_agents_core::json::Json;
use helix_agents_core::session::RunStatus;
use helix_agents_test::{Gate, Part, Reply, ScriptedLlm};

use super::support::{
    S, check_log, check_stream, check_transcript, checkpoints, completes, fold, fold_of, forked,
    held, killed_at, resume, run, start_run, teller, transcript, word,
};
use super::{RuntimeHarness, World};
use crate::normalise;

/// A signature, written as no JSON writer would write it.
const SIGNATURE: &str = r#"{ "signature" : "Eq\u0051B\/+==", "n" : 1.50 }"#;

/// Encrypted reasoning.
const ENCRYPTED: &str = r#"{"type":"redacted","data":"gAAAA=="}"#;

/// A part that only the provider reads. Its members are in no alphabetical order.
const OPAQUE: &str = r#"{"type":"server_tool_use","id":"srv_1","input":{"z":1e2,"a":[ ]}}"#;

/// Returns exactly this JSON text.
fn data(text: &str) -> Json {
    Json::parse(text).unwrap()
}

/// Returns a reply with reasoning before and after its text, and with a call in between.
fn signed() -> Reply {
    Reply::of_parts([
        Part::thinking("Für zwei.").with_data(data(SIGNATURE)),
        Part::text("I look."),
        Part::opaque(data(OPAQUE)),
        Part::thinking("").with_data(data(ENCRYPTED)),
        Part::call("say", word("a")).with_data(data(SIGNATURE)),
        Part::text(" And wait."),
    ])
}

fn script() -> ScriptedLlm {
    ScriptedLlm::new([signed(), Reply::text("Done.")])
}

/// Returns an agent whose tool waits at the gate.
fn agent(gate: &Gate) -> Agent {
    teller().tool(held("say", gate)).build().unwrap()
}

/// Compares the request after the signed reply, which is the n-th request that this model received.
fn check_request(llm: &ScriptedLlm, number: usize) {
    expect![[r#"
        user "go"
        assistant Some("I look. And wait.") say({"word":"a"})
          layout of scripted scripted
          part thinking "Für zwei." { "signature" : "Eq\u0051B\/+==", "n" : 1.50 }
          part text "I look."
          part opaque {"type":"server_tool_use","id":"srv_1","input":{"z":1e2,"a":[ ]}}
          part thinking "" {"type":"redacted","data":"gAAAA=="}
          part call say { "signature" : "Eq\u0051B\/+==", "n" : 1.50 }
          part text " And wait."
        tool say "a"
    "#]]
    .assert_eq(&normalise::transcript(&llm.seen()[number].messages));
}

/// The request after a reply with signed and opaque parts has these parts unchanged. The log keeps them, and the stream
/// shows those that a user can read.
pub async fn the_next_request_has_the_parts_of_a_reply_unchanged(harness: &impl RuntimeHarness) {
    let llm = script();
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &agent(&Gate::opened()), "go").await;
    completes(&handle).await;
    check_request(&llm, 1);
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "go"
            step 1 reply ToolUse in=10 out=5 thinking="Für zwei." "I look. And wait."
              call 1.0 say({"word":"a"})
              layout of scripted scripted
              part thinking "Für zwei." { "signature" : "Eq\u0051B\/+==", "n" : 1.50 }
              part text "I look."
              part opaque {"type":"server_tool_use","id":"srv_1","input":{"z":1e2,"a":[ ]}}
              part thinking "" {"type":"redacted","data":"gAAAA=="}
              part call say { "signature" : "Eq\u0051B\/+==", "n" : 1.50 }
              part text " And wait."
              result 1.0 "a"
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "Done."
            step 2 closed
            end completed "Done."
        "#]],
    )
    .await;
    check_stream(
        &handle,
        &expect![[r#"
            run_started
            thinking Für zwei.
            text I look.
            tool_arg 0 say
            args {"word":"a"}
            text  And wait.
            tool_start 1.0 say {"word":"a"}
            tool_end 1.0 success=true "a"
            checkpoint
            text Done.
            checkpoint
            output "Done."
            run_ended completed
        "#]],
    )
    .await;
}

/// A process crashes in a tool that a signed reply called. The request of the next process has the parts of the reply
/// unchanged, and the transcript contains the reply once.
pub async fn a_process_that_takes_over_sends_the_parts_of_a_reply_back(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let agent = agent(&gate);
    killed_at(harness, World::new(script()), &agent, &gate).await;
    let llm = script();
    let executor = harness.boot(World::new(llm.clone())).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    check_request(&llm, 0);
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant Some("I look. And wait.") say({"word":"a"})
              layout of scripted scripted
              part thinking "Für zwei." { "signature" : "Eq\u0051B\/+==", "n" : 1.50 }
              part text "I look."
              part opaque {"type":"server_tool_use","id":"srv_1","input":{"z":1e2,"a":[ ]}}
              part thinking "" {"type":"redacted","data":"gAAAA=="}
              part call say { "signature" : "Eq\u0051B\/+==", "n" : 1.50 }
              part text " And wait."
            tool say "a"
            assistant Some("Done.")
        "#]],
    )
    .await;
}

/// A run fails at the model call after a signed reply. A resume in another process sends the parts of the reply back
/// unchanged, and so does the next turn.
pub async fn a_resumed_session_sends_the_parts_of_a_reply_back(harness: &impl RuntimeHarness) {
    let agent = agent(&Gate::opened());
    let failing = ScriptedLlm::new([signed(), Reply::fails(ErrorCode::ProviderUnauthorized)]);
    let executor = harness.boot(World::new(failing)).await;
    assert_eq!(run(&*executor, &agent, "go").await.status, RunStatus::Failed);
    harness.kill().await;
    let llm = ScriptedLlm::new([signed(), Reply::text("Done."), Reply::text("Bye.")]);
    let executor = harness.boot(World::new(llm.clone())).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    check_request(&llm, 0);
    completes(&start_run(&*executor, &agent, "bye").await).await;
    let seen = llm.seen();
    let earlier = &seen[1].messages[..seen[0].messages.len()];
    assert_eq!(normalise::transcript(earlier), normalise::transcript(&seen[0].messages));
}

/// A fork after a signed reply sends the parts of the reply back unchanged, and so does the original once it was
/// rewound to the same checkpoint.
pub async fn forks_and_rewound_sessions_send_the_parts_of_a_reply_back(
    harness: &impl RuntimeHarness,
) {
    let agent = agent(&Gate::opened());
    let executor = harness.boot(World::new(script())).await;
    run(&*executor, &agent, "go").await;
    let original = transcript(&fold(harness).await);
    let at = checkpoints(harness).await[0];
    let fork = forked(&*executor, at, "fork").await;
    for (session, options) in
        [(fork, ResumeOptions::default()), (S.into(), ResumeOptions::default().checkpoint(at))]
    {
        let llm = script();
        let other = harness.boot(World::new(llm.clone())).await;
        let handle = other.resume(agent.erased(), &session, options).await.unwrap();
        completes(&handle).await;
        check_request(&llm, 0);
        assert_eq!(transcript(&fold_of(harness, &session).await), original, "{session}");
    }
}
