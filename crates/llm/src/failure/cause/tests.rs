//! Error bodies of providers and the causes in them.

use helix_agents_core::error::ErrorCode::{
    self, MediaUnsupported, ProviderCredentialsExpired, ProviderModelNotFound,
    ProviderRegionUnsupported,
};

use super::{MESSAGES, NAMES, ProviderError, fits};

fn cause(body: &str) -> Option<ErrorCode> {
    assert!(serde_json::from_str::<serde_json::Value>(body).is_ok(), "{body}");
    ProviderError::parse(body.as_bytes()).cause()
}

#[test]
fn an_expired_key_or_token_is_recognised() {
    for body in [
        // Google.
        r#"{"error":{"code":401,"message":"Request had invalid authentication credentials.","status":"UNAUTHENTICATED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"ACCESS_TOKEN_EXPIRED","domain":"googleapis.com"}]}}"#,
        r#"{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
        // AWS.
        r#"{"message":"The security token included in the request is expired"}"#,
        r#"{"Message":"x","message":"Bearer Token has expired"}"#,
        r#"{"error":{"type":"ExpiredTokenException","message":"x"}}"#,
        r#"{"code":"ExpiredToken","message":"x"}"#,
        // OpenAI, Groq, Anthropic.
        r#"{"error":{"message":"Sign in again.","type":null,"code":"token_expired"}}"#,
        r#"{"error":{"message":"Invalid API Key","type":"invalid_request_error","code":"expired_api_key"}}"#,
        r#"{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired. Please obtain a new token or refresh your existing token."}}"#,
    ] {
        assert_eq!(cause(body), Some(ProviderCredentialsExpired), "{body}");
    }
}

#[test]
fn a_model_that_does_not_exist_is_recognised() {
    for body in [
        // OpenAI, Groq.
        r#"{"error":{"message":"x","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
        r#"{"error":{"message":"The model `m` does not exist or you do not have access to it.","type":"invalid_request_error","code":null}}"#,
        r#"{"error":{"message":"x","type":"invalid_request_error","code":"model_decommissioned"}}"#,
        // Anthropic.
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-0"}}"#,
        // Gemini, Vertex AI.
        r#"{"error":{"code":404,"message":"models/gemini-0 is not found for API version v1beta, or is not supported for generateContent. Call ModelService.ListModels.","status":"NOT_FOUND"}}"#,
        r#"{"error":{"code":404,"message":"This model models/gemini-0 is no longer available to new users. Please update your code to use a newer model for the latest features and improvements.","status":"NOT_FOUND"}}"#,
        r#"{"error":{"code":404,"message":"Publisher Model `projects/p/locations/us-central1/publishers/google/models/m` was not found or your project does not have access to it. Please ensure you are using a valid model version.","status":"NOT_FOUND"}}"#,
        // Bedrock.
        r#"{"message":"The provided model identifier is invalid."}"#,
        r#"{"message":"You don’t have access to the model with the specified model ID."}"#,
        r#"{"error":{"type":"resourceNotFoundException","message":"x"}}"#,
        // Azure.
        r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#,
        r#"{"error":{"code":"unknown_model","message":"Unknown model: m"}}"#,
        // xAI, DeepSeek, Mistral, OpenRouter, Together, Fireworks, Hugging Face.
        r#"{"code":"Some requested entity was not found","error":"The model m does not exist or your team 1 does not have access to it. Please ensure you're using the correct API key."}"#,
        r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
        r#"{"object":"error","message":"Invalid model: m","type":"invalid_model","param":null,"code":"1500"}"#,
        r#"{"error":{"message":"some/m is not a valid model ID","code":400}}"#,
        r#"{"error":{"message":"No endpoints found for some/m.","code":404}}"#,
        r#"{"error":{"message":"x","type":"invalid_request_error","code":"model_not_available"}}"#,
        r#"{"error":{"message":"Model not found, inaccessible, and/or not deployed","code":"NOT_FOUND"}}"#,
        r#"{"error":{"message":"The requested model 'm' is not supported by any provider you have enabled.","type":"invalid_request_error","param":"model","code":"model_not_supported"}}"#,
        // Ollama, llama.cpp, vLLM, LiteLLM.
        r#"{"error":"model \"m\" not found, try pulling it first"}"#,
        r#"{"error":{"code":404,"message":"model 'm' not found","type":"not_found_error"}}"#,
        r#"{"object":"error","message":"The model `m` does not exist.","type":"NotFoundError","param":null,"code":404}"#,
        r#"{"error":{"message":"/chat/completions: Invalid model name passed in model=m. Call `/v1/models` to view available models for your key.","type":"None","code":"400"}}"#,
    ] {
        assert_eq!(cause(body), Some(ProviderModelNotFound), "{body}");
    }
}

#[test]
fn an_unsupported_region_is_recognised() {
    for body in [
        r#"{"error":{"code":"unsupported_country_region_territory","message":"x","param":null,"type":"request_forbidden"}}"#,
        r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#,
        r#"{"error":{"code":400,"message":"Publisher Model projects/p/locations/europe-west4/publishers/anthropic/models/m is not servable in region europe-west4.","status":"FAILED_PRECONDITION"}}"#,
        r#"{"message":"Invocation of model ID a.m-v1:0 with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model."}"#,
        r#"{"message":"Access to Anthropic models is not allowed from unsupported countries, regions, or territories. See the list."}"#,
        r#"{"error":{"message":"This model is not available in your region.","code":403}}"#,
    ] {
        assert_eq!(cause(body), Some(ProviderRegionUnsupported), "{body}");
    }
}

#[test]
fn an_image_or_file_that_the_model_does_not_accept_is_recognised() {
    for body in [
        // OpenAI.
        r#"{"error":{"message":"x","type":"invalid_request_error","param":"input","code":"unsupported_file"}}"#,
        r#"{"error":{"message":"x","type":"invalid_request_error","code":"invalid_image_format"}}"#,
        r#"{"error":{"message":"x","code":"unsupported_image_media_type"}}"#,
        r#"{"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error","param":"messages.[0].content.[1].type","code":null}}"#,
        // Anthropic, Gemini, Bedrock.
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5800000 bytes > 5242880 bytes"}}"#,
        r#"{"error":{"code":400,"message":"Image input modality is not enabled for models/gemma-3-1b-it","status":"INVALID_ARGUMENT"}}"#,
        r#"{"error":{"code":400,"message":"Unsupported MIME type: image/tiff","status":"INVALID_ARGUMENT"}}"#,
        r#"{"message":"This model doesn't support the image field for user messages."}"#,
        // OpenRouter, Mistral, DeepSeek.
        r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#,
        r#"{"object":"error","message":"Image input is not enabled for this model","type":"invalid_request_error","code":"3051"}"#,
        r#"{"error":{"message":"Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text` at line 1 column 99","type":"invalid_request_error"}}"#,
        // vLLM, llama.cpp, Ollama, LM Studio.
        r#"{"object":"error","message":"some/m is not a multimodal model None","type":"BadRequestError","code":400}"#,
        r#"{"object":"error","message":"At most 0 image(s) may be provided in one prompt.","type":"BadRequestError","code":400}"#,
        r#"{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}"#,
        r#"{"error":"Failed to process inputs: this model is missing data required for image input"}"#,
        r#"{"error":"Model does not support images. Please use a model that does."}"#,
    ] {
        assert_eq!(cause(body), Some(MediaUnsupported), "{body}");
    }
}

#[test]
fn similar_errors_about_other_things_have_no_such_cause() {
    for body in [
        r#"{"error":{"message":"x","type":"invalid_request_error","code":"invalid_model_parameter"}}"#,
        r#"{"error":{"message":"The model does not accept `top_k`.","type":"invalid_request_error","code":"unsupported_value"}}"#,
        r#"{"error":{"message":"Item with id 'rs_1' not found.","type":"invalid_request_error","code":null}}"#,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
        r#"{"type":"error","error":{"type":"not_found_error","message":"Not found"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"model: Field required"}}"#,
        r#"{"error":{"code":"404","message":"Resource not found"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Could not process image"}}"#,
        r#"{"error":{"message":"x","code":"image_parse_error"}}"#,
        r#"{"error":{"code":"Unauthorized","message":"Access token is missing, invalid, audience is incorrect (https://cognitiveservices.azure.com), or have expired."}}"#,
        r#"{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}"#,
        r#"{"error":{"code":401,"message":"x","status":"UNAUTHENTICATED","details":[{"reason":"ACCESS_TOKEN_TYPE_UNSUPPORTED"}]}}"#,
        // Quotes of the request.
        r#"{"error":{"message":"1 validation error: 'the model `m` does not exist'","code":400}}"#,
        r#"{"error":{"message":"1 validation error: 'a cow is not a multimodal model'","code":400}}"#,
        r#"{"detail":"input: 'image input is not supported'"}"#,
        r#"{}"#,
    ] {
        assert_eq!(cause(body), None, "{body}");
    }
}

#[test]
fn a_pattern_describes_the_whole_text() {
    for (pattern, text, expected) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "ab", true),
        ("a*", "ba", false),
        ("a*c*e", "abcde", true),
        ("a*c*e", "abcdef", false),
        ("a*c*", "acc", true),
        ("a*a", "a", false),
        ("* b", "a b", true),
        ("* b", "a a b", false),
        ("* b", "a bc", false),
        ("* b*", "a bc", true),
    ] {
        assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
    }
}

#[test]
fn names_and_patterns_have_the_form_that_they_are_compared_in() {
    let names = NAMES.iter().flat_map(|(_, names)| *names);
    for name in names {
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
    }
    let patterns = MESSAGES.iter().flat_map(|(_, patterns)| *patterns);
    for pattern in patterns {
        assert_eq!(pattern.to_lowercase(), *pattern);
        // A pattern of a single word would match messages about other things.
        assert!(pattern.split(' ').filter(|word| *word != "*").count() > 2, "{pattern}");
    }
}
