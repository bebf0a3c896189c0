//! Names of attributes: those of OpenTelemetry's conventions for generative AI, in the version 1.41 that most backends
//! understand, and our own. A change of this file changes what users have in their dashboards.

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const AGENT: &str = "gen_ai.agent.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
// Langfuse adds up all attributes below `gen_ai.usage.`, so there must be no others.
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(crate) const ERROR_TYPE: &str = "error.type";

/// The `error.type` of a run whose process stopped.
pub(crate) const LOST: &str = "lost";

pub(crate) const LINK: &str = "helix.link";
pub(crate) const RUN: &str = "helix.run.id";
pub(crate) const TURN: &str = "helix.turn";
pub(crate) const STEP: &str = "helix.step";
pub(crate) const TRIGGER: &str = "helix.trigger";
pub(crate) const STATUS: &str = "helix.status";
pub(crate) const RUNTIME: &str = "helix.runtime";
pub(crate) const STORE_OPERATION: &str = "helix.store.operation";
pub(crate) const STORE_OUTCOME: &str = "helix.store.outcome";
pub(crate) const COST: &str = "helix.cost";
pub(crate) const ATTEMPTS: &str = "helix.attempts";
pub(crate) const EFFECT: &str = "helix.effect";
pub(crate) const PARENT_SESSION: &str = "helix.parent.session.id";
pub(crate) const PARENT_CALL: &str = "helix.parent.call.id";
pub(crate) const WAIT_KIND: &str = "helix.wait.kind";
pub(crate) const WAIT_OUTCOME: &str = "helix.wait.outcome";
pub(crate) const ANSWER: &str = "helix.wait.answer";
pub(crate) const SUSPENDED: &str = "helix.suspended";
pub(crate) const RESUMED: &str = "helix.resumed";
pub(crate) const REASON: &str = "helix.suspended.reason";
pub(crate) const CALLS: &str = "helix.suspended.calls";
