//! Causes that have their own error code, whatever the status of the response.
//!
//! The names and messages are those that providers document or send. A name must be equal, and a pattern must match the
//! whole message: a single word such as `model` proves nothing, because it also occurs in errors about other things and
//! in quotes of the request.

use helix_agents_core::error::ErrorCode;

use super::body::{ProviderError, plain};

#[cfg(test)]
mod tests;

/// Codes, types and reasons, in lower case and without separators.
const NAMES: &[(ErrorCode, &[&str])] = &[
    (
        ErrorCode::ProviderCredentialsExpired,
        // Google, Groq, AWS (two names), and OpenAI's and others' access tokens.
        &[
            "accesstokenexpired",
            "expiredapikey",
            "expiredtoken",
            "expiredtokenexception",
            "tokenexpired",
        ],
    ),
    (
        ErrorCode::ProviderModelNotFound,
        &[
            "deploymentnotfound",        // Azure
            "invalidmodel",              // Mistral
            "modeldecommissioned",       // Groq
            "modelnotavailable",         // Together
            "modelnotfound",             // OpenAI, Groq and others
            "modelnotsupported",         // Hugging Face
            "resourcenotfoundexception", // Bedrock
            "unknownmodel",              // Azure
        ],
    ),
    (ErrorCode::ProviderRegionUnsupported, &["unsupportedcountryregionterritory"]),
    (
        ErrorCode::MediaUnsupported,
        // OpenAI. Images that are damaged or cannot be fetched are not among them, because no other model would
        // accept them.
        &[
            "imagefiletoolarge",
            "imagetoolarge",
            "imagetoosmall",
            "invalidimageformat",
            "invalidimagemode",
            "unsupportedfile",
            "unsupportedimagemediatype",
        ],
    ),
];

/// Messages in lower case, with straight apostrophes. `*` matches any text; at the start of a pattern, it
/// matches text without spaces.
const MESSAGES: &[(ErrorCode, &[&str])] = &[
    (
        ErrorCode::ProviderCredentialsExpired,
        &[
            "api key expired. please renew the api key.*", // Gemini
            "bearer token has expired*",                   // Bedrock
            "oauth token has expired.*",                   // Anthropic
            "the security token included in the request is expired*", // AWS
        ],
    ),
    (
        ErrorCode::ProviderRegionUnsupported,
        &[
            "user location is not supported for the api use.*", // Gemini
            "publisher model * is not servable in region *",    // Vertex AI
            "invocation of model id * with on-demand throughput isn't supported.*", // Bedrock
            "access to * models is not allowed from unsupported countries, regions, or territories.*", // Bedrock
            "this model is not available in your region.*", // OpenRouter
        ],
    ),
    (
        ErrorCode::ProviderModelNotFound,
        &[
            "the model `*` does not exist*", // OpenAI, vLLM, Groq
            "the model * does not exist or your team * does not have access to it.*", // xAI
            "models/* is not found for api version *", // Gemini
            "this model models/* is no longer available*", // Gemini
            "publisher model * not found*",  // Vertex AI, also for a model of another region
            "the provided model identifier is invalid.*", // Bedrock, also for a model of another region
            "you don't have access to the model with the specified model id.*", // Bedrock
            "model not exist*",                           // DeepSeek
            "* is not a valid model id",                  // OpenRouter
            "no endpoints found for *",                   // OpenRouter
            "model not found, inaccessible, and/or not deployed*", // Fireworks
            "model '*' not found*",                       // Ollama, llama.cpp, Cohere
            "model \"*\" not found*",                     // Ollama
            "*: invalid model name passed in model=*",    // LiteLLM
        ],
    ),
    (
        ErrorCode::MediaUnsupported,
        &[
            "invalid content type. image_url is only supported by certain models.*", // OpenAI
            "this model does not support image input*", // OpenAI, Ollama
            "model does not support images.*",          // LM Studio
            "no endpoints found that support image input*", // OpenRouter
            "no endpoints found that support input audio*", // OpenRouter
            "image input modality is not enabled for *", // Gemini
            "audio input modality is not enabled for *", // Gemini
            "unsupported mime type: *",                 // Gemini
            "messages.*.source.base64.media_type: input should be *", // Anthropic
            "messages.*.source.base64: image exceeds *", // Anthropic
            "this model doesn't support the image field*", // Bedrock
            "this model doesn't support the document field*", // Bedrock
            "image input is not enabled for this model*", // Mistral
            "failed to deserialize the json body into the target type: messages[*]: unknown variant `image_url`, expected `text`*", // DeepSeek
            "image input is not supported*", // llama.cpp
            "audio input is not supported*", // llama.cpp
            "this model is missing data required for image input*", // Ollama
            "failed to process inputs: this model is missing data required for image input*", // Ollama
            "* is not a multimodal model*",                // vLLM
            "at most 0 image(s) may be provided in one *", // vLLM
        ],
    ),
];

impl ProviderError {
    /// Returns the code of the cause, or `None` if the status decides.
    pub(super) fn cause(&self) -> Option<ErrorCode> {
        let mut names = self.names().map(plain);
        let by_name = names.find_map(|name| {
            NAMES.iter().find(|(_, known)| known.contains(&name.as_str())).map(|(code, _)| *code)
        });
        by_name.or_else(|| self.cause_of_message())
    }

    fn cause_of_message(&self) -> Option<ErrorCode> {
        let message = self.message.as_deref()?.trim().to_lowercase().replace('’', "'");
        // Anthropic's message is only `model: NAME`.
        let mut names = self.names().map(plain);
        if names.any(|name| name == "notfounderror") && fits("model: *", &message) {
            return Some(ErrorCode::ProviderModelNotFound);
        }
        let has = |patterns: &&[&str]| patterns.iter().any(|pattern| fits(pattern, &message));
        MESSAGES.iter().find(|(_, patterns)| has(patterns)).map(|(code, _)| *code)
    }
}

/// Returns `true` if the whole text has the form of the pattern.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut is_word = start.is_empty();
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() && !is_word {
            return text.ends_with(part);
        }
        let Some((before, after)) = text.split_once(part) else { return false };
        if is_word && before.contains(char::is_whitespace) {
            return false;
        }
        if parts.peek().is_none() {
            return after.is_empty();
        }
        (text, is_word) = (after, false);
    }
    true
}
