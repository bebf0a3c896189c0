//! Tests of the names of providers.

use super::*;

#[test]
fn providers_have_the_names_of_the_conventions() {
    let chat = ApiFormat::OpenAiResponses;
    assert_eq!(provider_name(&chat, "openai"), "openai");
    assert_eq!(provider_name(&chat, "azure"), "azure.ai.openai");
    assert_eq!(provider_name(&ApiFormat::AnthropicMessages, "anthropic"), "anthropic");
    assert_eq!(provider_name(&ApiFormat::AnthropicMessages, "bedrock"), "aws.bedrock");
    assert_eq!(provider_name(&ApiFormat::BedrockConverse, "models"), "aws.bedrock");
    assert_eq!(provider_name(&ApiFormat::GeminiGenerate, "gemini"), "gcp.gemini");
    assert_eq!(provider_name(&ApiFormat::GeminiGenerate, "vertex"), "gcp.vertex_ai");
    assert_eq!(provider_name(&chat, "our-proxy"), "our-proxy");
}
