//! Approvals and client tools of a remote agent, answered at the local root session.

use helix_agents_core::executor::AgentExecutor as _;
use helix_agents_core::session::{PendingCallView, RunStatus, Submission};
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::json;

use super::{Home, remote};
use crate::support::World;

/// Returns a session in which a call of this tool waits for an approval.
async fn asked(tool: &str, reply: &str) -> (World, Home, PendingCallView) {
    let replies = [Reply::tool_call(tool, json!({ "to": "Bob" })), Reply::text(reply)];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let home = Home::of(remote(world.client()));
    assert_eq!(home.run().await, RunStatus::SuspendedAwaitingChildren);
    let mut pending = home.pending().await;
    assert_eq!(pending.len(), 1);
    (world, home, pending.remove(0))
}

#[tokio::test]
async fn an_approval_at_the_root_reaches_the_server_with_the_digest() {
    let (world, home, call) = asked("pay", "Paid Bob.").await;
    let arguments = call.arguments.to_value();
    assert_eq!(&*call.pending.tool, "remote_approval");
    assert_eq!(
        (&arguments["tool"], &arguments["arguments"]),
        (&json!("pay"), &json!({ "to": "Bob" }))
    );
    let approval = Submission::approve(call.reference()).digest(call.pending.digest.clone());
    home.runtime.submit_tool_result(&"talk".into(), approval).await.unwrap();
    assert_eq!(home.resume().await, RunStatus::Completed);
    assert!(home.result().contains("Paid Bob."), "{}", home.result());
    assert!(format!("{:?}", world.model.seen()[1].messages).contains("paid Bob"));
    assert_eq!(world.model.calls(), 2);
}

#[tokio::test]
async fn an_edited_approval_reaches_the_server() {
    let (world, home, call) = asked("give", "Given.").await;
    let mut arguments = call.arguments.to_value();
    arguments["arguments"]["to"] = "Eve".into();
    arguments["digest"] = "forged".into();
    let approval = Submission::approve_edited(call.reference(), &arguments).unwrap();
    home.runtime.submit_tool_result(&"talk".into(), approval).await.unwrap();
    assert_eq!(home.resume().await, RunStatus::Completed);
    assert!(format!("{:?}", world.model.seen()[1].messages).contains("paid Eve"));
}

#[tokio::test]
async fn an_edit_that_the_remote_tool_does_not_allow_is_requested_again() {
    let (world, home, call) = asked("pay", "Paid.").await;
    let mut arguments = call.arguments.to_value();
    arguments["arguments"]["to"] = "Eve".into();
    let edited = Submission::approve_edited(call.reference(), &arguments).unwrap();
    home.runtime.submit_tool_result(&"talk".into(), edited).await.unwrap();
    assert_eq!(home.resume().await, RunStatus::SuspendedAwaitingChildren);
    let again = home.pending().await;
    assert_eq!(again[0].arguments.to_value()["arguments"], json!({ "to": "Bob" }));
    home.runtime
        .submit_tool_result(&"talk".into(), Submission::approve(again[0].reference()))
        .await
        .unwrap();
    assert_eq!(home.resume().await, RunStatus::Completed);
    assert!(format!("{:?}", world.model.seen()[1].messages).contains("paid Bob"));
}

#[tokio::test]
async fn a_denial_and_the_result_of_a_client_tool_reach_the_server() {
    let calls = [("pay", json!({ "to": "Bob" })), ("ask", json!({ "question": "Why?" }))];
    let world = World::new(ScriptedLlm::new([Reply::calls(calls), Reply::text("I see.")])).await;
    let home = Home::of(remote(world.client()));
    home.run().await;
    for call in home.pending().await {
        let answer = match &*call.pending.tool {
            "remote_approval" => Submission::deny(call.reference(), "too expensive".to_owned()),
            _ => Submission::result(call.reference(), &json!({ "because": "so" })).unwrap(),
        };
        home.runtime.submit_tool_result(&"talk".into(), answer).await.unwrap();
    }
    assert_eq!(home.resume().await, RunStatus::Completed);
    let seen = format!("{:?}", world.model.seen()[1].messages);
    assert!(seen.contains("too expensive") && seen.contains("because"), "{seen}");
    assert_eq!(world.model.calls(), 2);
}
