//! A model call for tests.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::json::Json;
use helix_agents_core::llm::{
    LlmAdapter, LlmConfig, LlmRequest, LlmResponse, RetryPolicy, ToolChoice,
};
use helix_agents_core::message::{Message, SharedMessage, UserMessage};
use helix_agents_core::schema::Schema;
use helix_agents_core::tool::{ToolSet, ToolSpec};
use helix_agents_llm::{ApiFormat, ModelServer, ModelServerOptions};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Recorder, Server};

/// One model call.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) prompt: SharedMessage,
    pub(crate) messages: Vec<SharedMessage>,
    pub(crate) tools: Arc<ToolSet>,
    pub(crate) force: Option<&'static str>,
    pub(crate) output_schema: Option<Value>,
    pub(crate) config: LlmConfig,
    pub(crate) max_retries: u32,
    pub(crate) cancel: CancellationToken,
    pub(crate) sink: Recorder,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            prompt: Message::System { content: "Be brief.".to_owned() }.into(),
            messages: vec![Message::User(UserMessage::new("Hello?")).into()],
            tools: Arc::default(),
            force: None,
            output_schema: None,
            config: LlmConfig::new("local:m1"),
            max_retries: 0,
            cancel: CancellationToken::new(),
            sink: Recorder::default(),
        }
    }
}

impl Ask {
    /// Makes the call.
    pub(crate) async fn of(&self, adapter: &dyn LlmAdapter) -> Result<LlmResponse> {
        let session = SessionId::from("ses_1");
        let schema = self.output_schema.clone().map(|schema| Schema::from_value(schema).unwrap());
        let (config, prompt, cancel) = (&self.config, &self.prompt, &self.cancel);
        let request = LlmRequest::new(&session, config, prompt, &self.messages, cancel)
            .agent("tester")
            .tools(&self.tools)
            .tool_choice(self.force.map_or(ToolChoice::Auto, ToolChoice::Tool))
            .output_schema(schema.as_ref())
            .max_retries(self.max_retries);
        adapter.generate_step(request, &self.sink).await
    }

    /// Makes the call, which must return a response or a failure of the provider.
    pub(crate) async fn answer(&self, adapter: &dyn LlmAdapter) -> LlmResponse {
        self.of(adapter).await.unwrap()
    }
}

/// Returns a provider `local` for a scripted server, whose waits take no time.
pub(crate) fn adapter(server: &Server) -> ModelServer {
    ModelServer::new(options(server)).unwrap()
}

/// Returns a provider like [`adapter`] with another API.
pub(crate) fn adapter_of(server: &Server, format: ApiFormat) -> ModelServer {
    ModelServer::new(options(server).with_format(format)).unwrap()
}

/// Returns the options of [`adapter`].
pub(crate) fn options(server: &Server) -> ModelServerOptions {
    let policy = RetryPolicy::default().base(Duration::from_millis(1));
    ModelServerOptions::new("local", &server.url())
        .with_api_key("key-of-the-tests")
        .with_retry(policy)
}

/// Returns a tool as a model sees it.
pub(crate) fn tool(name: &str, schema: Value, strict: bool) -> ToolSpec {
    ToolSpec::new(name, format!("Runs {name}."), Json::from(schema)).strict(strict)
}
