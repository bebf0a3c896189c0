//! A session whose model does not accept an attached image.

use std::sync::Arc;

use helix_agents::message::{Media, Message};
use helix_agents::prelude::*;
use helix_agents::providers::ModelServerOptions;
use helix_agents_test::{Reply, ScriptedLlm};

fn agent(model: &str) -> Agent<String> {
    Agent::builder("viewer").system_prompt("Describe images.").model(model).build().unwrap()
}

#[tokio::test]
async fn another_model_continues_the_session_with_the_image() {
    let script = ScriptedLlm::new([Reply::text("A cat.")]);
    // The error is found before the call, so nothing is sent to the server.
    let models = ProviderRegistry::new()
        .with_provider(ModelServerOptions::new("blind", "http://127.0.0.1:9/v1"))
        .unwrap()
        .with_adapter("script", Arc::new(script.clone()));
    let runtime = LocalRuntime::builder().store(MemoryStore::new()).llm(models).build().unwrap();
    let message = UserMessage::new("What is this?").attach(Media::from_bytes("image/png", b"PNG"));
    let options = ExecuteOptions::default().session("s");
    let run = runtime.start(&agent("blind:o3-mini"), message.clone(), options).await.unwrap();
    let result = run.result().await.unwrap();
    assert_eq!(result.status, RunStatus::Failed);
    assert!(result.error.unwrap().is(ErrorCode::MediaUnsupported));

    let session = SessionId::from("s");
    let other = agent("script:any");
    let run = runtime.resume_agent(&other, &session, ResumeOptions::default()).await.unwrap();
    let result = run.result().await.unwrap();
    assert_eq!(result.output.as_deref(), Some("A cat."));
    let seen = &script.seen()[0].messages;
    assert_eq!(*seen[0], Message::User(message));
}
