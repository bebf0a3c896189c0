//! The token usage of a turn, as both protocols show it.

use helix_agents_core::usage::Usage;
use serde_json::{Value, json};

/// Returns the token counts under the names that the AI SDK and AG-UI share. The input and output tokens are totals,
/// and the other counts are parts of them.
pub(crate) fn tokens(usage: &Usage) -> Value {
    json!({
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.total(),
        "cachedInputTokens": usage.cached_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
        "reasoningTokens": usage.reasoning_tokens,
    })
}
