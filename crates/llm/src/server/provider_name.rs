//! The name of a provider in OpenTelemetry's conventions for generative AI.

use super::ApiFormat;

/// Returns the value of `gen_ai.provider.name` for a server. Providers that the conventions do not name keep their own
/// names.
pub(super) fn provider_name<'a>(format: &ApiFormat, name: &'a str) -> &'a str {
    match (format, name) {
        (_, "azure") => "azure.ai.openai",
        (_, "mistral") => "mistral_ai",
        (_, "xai") => "x_ai",
        (_, "vertex") => "gcp.vertex_ai",
        (ApiFormat::BedrockConverse, _) | (_, "bedrock") => "aws.bedrock",
        (ApiFormat::GeminiGenerate, "gemini" | "google") => "gcp.gemini",
        _ => name,
    }
}

#[cfg(test)]
mod tests;
