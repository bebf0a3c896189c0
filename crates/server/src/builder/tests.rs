//! Settings that the builder rejects.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::ScriptedLlm;

use crate::AgentServer;
use crate::builder::{AgentServerBuilder, WithAuthorizer};

fn builder() -> AgentServerBuilder<WithAuthorizer> {
    let store = MemoryStore::new();
    let runtime = LocalRuntime::builder().store(store.clone()).llm(ScriptedLlm::new([]));
    let runtime: Arc<dyn AgentExecutor> = Arc::new(runtime.build().unwrap());
    AgentServer::builder(runtime, AgentRegistry::default(), store).allow_unauthenticated()
}

#[test]
fn a_server_that_sweeps_needs_a_runtime_and_another_does_not() {
    assert_eq!(builder().build().unwrap_err().code(), ErrorCode::ConfigInvalid);
    builder().no_sweep().build().unwrap();
}

#[tokio::test]
async fn names_that_no_request_has_are_refused() {
    for origin in ["example.com", "https://Example.com", "https://a.com/", "https://*.a.com", "*"] {
        let error = builder().origin(origin).build().unwrap_err();
        assert!(error.to_string().contains(origin), "{error}");
    }
    for host in ["", "https://a.com", "*.a.com"] {
        assert_eq!(builder().host(host).build().unwrap_err().code(), ErrorCode::ConfigInvalid);
    }
    let server = builder().origin("https://app.example.com:8443").host("API.example.com");
    let server = server.sweep(Duration::from_secs(60)).build().unwrap();
    server.shutdown().await;
}
