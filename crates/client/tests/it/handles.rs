//! Handles to runs at a server.

use futures_util::StreamExt as _;
use helix_agents_client::StartRequest;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::session::RunStatus;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::json;

use crate::support::{World, text_of};

#[tokio::test]
async fn a_handle_follows_its_run_and_returns_its_result() {
    let world = World::new(ScriptedLlm::new([Reply::text("One."), Reply::text("Two.")])).await;
    let client = world.client();
    let start = || client.start(StartRequest::new("clerk", "Go!").session("talk"));
    let first = start().await.unwrap();
    let first = client.handle(&first.session, &first.run);
    assert_eq!(within(first.result()).await.unwrap().output.unwrap().to_value(), "One.");
    let second = start().await.unwrap();
    let second = client.handle(&second.session, &second.run);
    within(second.result()).await.unwrap();
    // Each stream has the chunks of its own run.
    for (handle, text) in [(first, "One."), (second, "Two.")] {
        let chunks: Vec<_> = within(handle.stream().await.unwrap().collect()).await;
        let chunks: Vec<_> = chunks.into_iter().map(Result::unwrap).collect();
        assert_eq!(text_of(&chunks), text);
        assert!(chunks.last().unwrap().chunk.kind.ends_run());
        assert_eq!(handle.load_session().await.unwrap().turn(), 2);
        assert_eq!(handle.usage().await.unwrap().steps, 2);
        assert_eq!(handle.abort(None).await.unwrap_err().code(), ErrorCode::NothingToStop);
    }
}

#[tokio::test]
async fn a_handle_stops_its_run_and_returns_a_suspension() {
    let gate = Gate::new();
    let replies = [
        Reply::more_text("One.").at_gate(&gate),
        Reply::tool_call("ask", json!({ "question": "Why?" })),
    ];
    let world = World::new(ScriptedLlm::new(replies)).await;
    let client = world.client();
    let started = client.start(StartRequest::new("clerk", "Go!")).await.unwrap();
    let handle = client.handle(&started.session, &started.run);
    gate.reached().await;
    handle.interrupt("lunch".to_owned()).await.unwrap();
    gate.open();
    let result = within(handle.result()).await.unwrap();
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Interrupted, Some("lunch")));
    let resumed =
        client.resume(helix_agents_client::ResumeRequest::new(started.session)).await.unwrap();
    let result = within(client.handle(&resumed.session, &resumed.run).result()).await.unwrap();
    assert_eq!(result.status, RunStatus::SuspendedClientTool);
    assert_eq!(result.suspended.unwrap().calls.len(), 1);
    let unknown = client.handle(&resumed.session, &"no-such-run".into());
    assert_eq!(unknown.result().await.unwrap_err().code(), ErrorCode::RunNotFound);
}
