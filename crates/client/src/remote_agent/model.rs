//! The model adapter of a remote agent, whose model calls are runs at a server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::agent::finish_arguments;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, ErrorRecord, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::message::{Arguments, Thinking};
use helix_agents_core::schema::Schema;
use helix_agents_core::step::{ParsedToolCall, StepResult, StopReason};
use helix_agents_core::tool::FINISH_TOOL;
use helix_agents_core::usage::Usage;
use tokio::time::sleep;

use super::conversation::{Conversation, remote_session};
use super::questions;
use super::turn::{Outcome, Shown, Turn};
use crate::api::StopRequest;
use crate::client::Client;

/// The maximum number of attempts to abort a remote session. Repeating an abort is harmless, because nothing else
/// starts runs in the session.
const ABORTS: u32 = 2;

/// The pause between these attempts.
const ABORT_PAUSE: Duration = Duration::from_secs(1);

/// Makes model calls by starting and following runs of an agent at a server.
#[derive(Debug)]
pub(super) struct RemoteModel {
    pub(super) client: Client,
    /// The agent's name at the server.
    pub(super) agent: String,
    /// The name of the model, under which usage counts.
    pub(super) model: Arc<str>,
    /// The schema of the output.
    pub(super) schema: Schema,
    /// The time for which a call tries to reach the server.
    pub(super) patience: Duration,
    /// Whether requests that start or resume a run carry the trace of the local turn.
    pub(super) propagates_trace: bool,
}

#[async_trait]
impl LlmAdapter for RemoteModel {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let conversation = match Conversation::of(&request) {
            Ok(conversation) => conversation,
            Err(error) => {
                return Ok(self.response(Outcome::Failed(error.record()), Shown::default()));
            }
        };
        let mut turn = Turn::new(self, &request, sink, conversation);
        let outcome = turn.run().await;
        Ok(self.response(outcome, turn.into_shown()))
    }

    fn check(&self, _: &LlmConfig) -> Result<()> {
        Ok(())
    }

    async fn abort(
        &self,
        session: &SessionId,
        created_at: Timestamp,
        reason: Option<&str>,
    ) -> Result<()> {
        let mut request = StopRequest::new(remote_session(session, created_at)?);
        request.reason = reason.map(str::to_owned);
        let mut attempts = 1;
        loop {
            let error = match self.client.abort(request.clone()).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            // The abort may have overtaken the start.
            let is_unknown = error.is(ErrorCode::SessionNotFound);
            if attempts == ABORTS || !(is_unknown || error.is_retryable()) {
                return if is_unknown { Ok(()) } else { Err(Error::from(error)) };
            }
            attempts += 1;
            sleep(ABORT_PAUSE).await;
        }
    }
}

impl RemoteModel {
    fn response(&self, outcome: Outcome, shown: Shown) -> LlmResponse {
        let Shown { text, thinking, usage, .. } = shown;
        let thinking = Some(thinking).filter(|thinking| !thinking.is_empty()).map(Thinking::new);
        let calls = |content: String, thinking, tool_calls| StepResult::ToolCalls {
            content: Some(content).filter(|content| !content.is_empty()),
            tool_calls,
            sub_agent_calls: Vec::new(),
            thinking,
            stop_reason: Some(StopReason::ToolUse),
        };
        let error = |error, should_stop| StepResult::Error {
            error,
            should_stop,
            stop_reason: Some(StopReason::Error),
        };
        let mut is_end = false;
        let result = match outcome {
            Outcome::Completed(output) => {
                is_end = true;
                let arguments = Arguments::Json(finish_arguments(&self.schema, &output));
                let finish = ParsedToolCall::new(FINISH_TOOL, FINISH_TOOL, arguments);
                calls(text, thinking, vec![finish])
            }
            Outcome::Asks(questions) => calls(text, thinking, questions),
            Outcome::Waits(reason, wait) => {
                calls(text, thinking, vec![questions::wait(&reason, wait)])
            }
            Outcome::Paused => StepResult::Text {
                content: text,
                thinking,
                should_stop: false,
                stop_reason: Some(StopReason::Pause),
            },
            Outcome::Discarded => {
                let message = "the server restarted a step; retrying";
                error(ErrorRecord::new(ErrorCode::AttemptDiscarded, message), false)
            }
            Outcome::Failed(record) => {
                is_end = true;
                error(record, true)
            }
        };
        // The usage of a turn is known when it ends.
        let usage = if is_end { usage } else { Usage::default() };
        let mut response = LlmResponse::new(result, usage);
        response.model = Some(Arc::clone(&self.model));
        response
    }
}
