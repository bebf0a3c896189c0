//! Answers to client tools and approvals.

use helix_agents_client::{Resumption, StartRequest, StreamEnd};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::PendingKind;
use helix_agents_core::session::Submission;
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::json;

use crate::support::{World, rest};

async fn waiting(replies: [Reply; 2]) -> World {
    let world = World::new(ScriptedLlm::new(replies)).await;
    let client = world.client();
    client.start(StartRequest::new("clerk", "Go!").session("talk")).await.unwrap();
    let mut chunks = client.follow(&"talk".into());
    rest(&mut chunks).await;
    assert_eq!(chunks.end(), Some(StreamEnd::Paused));
    world
}

#[tokio::test]
async fn an_approval_with_the_digest_runs_the_call_and_any_other_does_not() {
    let world =
        waiting([Reply::tool_call("pay", json!({ "to": "Bob" })), Reply::text("Paid.")]).await;
    let (client, talk) = (world.client(), "talk".into());
    let pending = client.status(&talk).await.unwrap().pending_calls;
    let call = &pending[0];
    assert_eq!(call.pending.kind, PendingKind::Approval { editable: false });
    assert_eq!((&*call.pending.tool, call.arguments.to_value()), ("pay", json!({ "to": "Bob" })));

    let other = Submission::approve(call.reference()).digest("another");
    let error = client.submit(&talk, &other).await.unwrap_err();
    assert!(error.is(ErrorCode::ArgumentsChanged) && error.status() == Some(409), "{error}");
    let approval = Submission::approve(call.reference()).digest(call.pending.digest.clone());
    let answered = client.submit(&talk, &approval).await.unwrap();
    assert_eq!(answered.resumption, Resumption::Started);
    assert!(answered.run.is_some() && answered.call == "talk#1.0");
    rest(&mut client.follow(&talk)).await;
    let again = client.submit(&talk, &Submission::approve(call.reference())).await.unwrap_err();
    assert!(again.is(ErrorCode::AlreadyAnswered), "{again}");
    let seen = format!("{:?}", world.model.seen()[1].messages);
    assert!(seen.contains("paid Bob"), "{seen}");
}

#[tokio::test]
async fn a_denial_reaches_the_model_with_its_reason() {
    let world =
        waiting([Reply::tool_call("pay", json!({ "to": "Bob" })), Reply::text("Oh.")]).await;
    let (client, talk) = (world.client(), "talk".into());
    client.submit(&talk, &Submission::deny("1.0", "too expensive".to_owned())).await.unwrap();
    rest(&mut client.follow(&talk)).await;
    assert!(format!("{:?}", world.model.seen()[1].messages).contains("too expensive"));
}

#[tokio::test]
async fn a_client_tool_gets_a_result_that_is_recorded_once_and_resumed_later() {
    let world =
        waiting([Reply::tool_call("ask", json!({ "question": "Why?" })), Reply::text("I see.")])
            .await;
    let (client, talk) = (world.client(), "talk".into());
    let result =
        Submission::result("1.0", &json!({ "because": "so" })).unwrap().request("answer-1");
    let answered = client.submit_only(&talk, &result).await.unwrap();
    assert_eq!((answered.resumption, answered.run), (Resumption::NotRequested, None));
    // The same answer again resumes the session.
    assert_eq!(client.submit(&talk, &result).await.unwrap().resumption, Resumption::Started);
    rest(&mut client.follow(&talk)).await;
    assert!(format!("{:?}", world.model.seen()[1].messages).contains("because"));
    assert_eq!(world.model.calls(), 2);
}
