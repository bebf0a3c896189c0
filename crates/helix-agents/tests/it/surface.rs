//! The paths of the facade's names.

use helix_agents::prelude::*;
use helix_agents::tool;
use helix_agents::tool::NoInput;

/// `tool` is a module and an attribute at once.
/// Say hello.
#[tool]
async fn hello(_nothing: NoInput) -> Result<&'static str, ToolError> {
    Ok("hello")
}

/// A runtime with the default features, but without a real model.
fn runtime(store: MemoryStore) -> helix_agents::Result<LocalRuntime> {
    LocalRuntime::builder().store(store).llm(ProviderRegistry::new()).build()
}

#[tokio::test]
async fn an_agent_can_be_built_with_the_prelude() {
    let agent = Agent::builder("greeter").system_prompt("Greet.").tool(hello).build().unwrap();
    let runtime = runtime(MemoryStore::new()).unwrap();
    let error = runtime.run(&agent, "hi").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ModelUnknown);
}

/// One store keeps logs and streams, so no method of one contract may hide a method of the other.
#[tokio::test]
async fn a_store_reads_logs_and_streams_with_the_prelude() {
    let store = MemoryStore::new();
    let session = SessionId::from("nobody");
    let error = store.read_log(&session, 0, 1).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::SessionNotFound);
    assert!(store.read(&session, 1).await.is_ok(), "a stream can be read before it is written");
}

#[test]
fn crates_behind_features_have_their_own_module() {
    fn same<T>(_: fn() -> T, _: fn() -> T) {}
    same(helix_agents::store_memory::MemoryStore::new, helix_agents::prelude::MemoryStore::new);
    same(helix_agents::providers::ProviderRegistry::new, ProviderRegistry::new);
}
