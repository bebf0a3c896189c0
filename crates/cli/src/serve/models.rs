//! The models of the served agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};

/// An adapter that passes each call to the one of its agent. Each agent file may have its own model and planner.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentModels {
    by_agent: BTreeMap<String, Arc<dyn LlmAdapter>>,
}

impl AgentModels {
    /// Adds the adapter of an agent.
    pub(super) fn insert(&mut self, agent: &str, adapter: Arc<dyn LlmAdapter>) {
        self.by_agent.insert(agent.to_owned(), adapter);
    }
}

#[async_trait]
impl LlmAdapter for AgentModels {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let adapter = self.by_agent.get(request.agent).ok_or_else(|| {
            Error::new(ErrorCode::ModelUnknown, "the server has no model for this agent")
                .with_context("agent", request.agent)
        })?;
        adapter.generate_step(request, sink).await
    }

    /// Accepts settings that the model of any agent supports: a check does not name the agent.
    fn check(&self, config: &LlmConfig) -> Result<()> {
        let mut checked = Ok(());
        for adapter in self.by_agent.values() {
            checked = adapter.check(config);
            if checked.is_ok() {
                break;
            }
        }
        checked
    }
}
