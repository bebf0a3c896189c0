//! The capabilities of a server, and its differences from OpenAI.

use serde::Deserialize;

/// The request field that limits the length of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MaxTokensField {
    /// `max_tokens`, which every server accepts except OpenAI's newer models.
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's newer models require.
    MaxCompletionTokens,
}

/// The request format for a JSON schema of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputFormat {
    /// `{"type": "json_schema", …}`, as OpenAI documents it.
    JsonSchema,
    /// `{"type": "json_object", "schema": …}`, the older form of llama.cpp's Python server.
    JsonObject,
    /// No format: `native_output` is rejected.
    Unsupported,
}

/// The capabilities of a server. Start from one of the constructors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerProfile {
    /// Whether replies are streamed.
    pub stream: bool,
    /// Whether replies are also streamed if the model may choose tools.
    pub stream_tool_choice: bool,
    /// Whether the request asks for token counts at the end of a stream.
    pub stream_usage: bool,
    /// Whether streamed replies have a finish reason. A stream without one is then an incomplete
    /// reply.
    pub finish_reasons: bool,
    /// The field that limits the length of a reply.
    pub max_tokens_field: MaxTokensField,
    /// Whether a message without text has the content `""`, because the server rejects `null`.
    pub empty_content: bool,
    /// Whether requests contain the reasoning of earlier replies, because the server requires it.
    pub reasoning_content: bool,
    /// The request format for a JSON schema of the output.
    pub output_format: OutputFormat,
    /// Whether the request states that the model may choose tools, because the server otherwise
    /// disables them.
    pub explicit_tool_choice: bool,
    /// Whether the server accepts `strict` for tools.
    pub strict_tools: bool,
    /// Whether the server supports `top_k`.
    pub top_k: bool,
}

impl ServerProfile {
    /// Returns the profile of OpenAI.
    #[must_use]
    pub fn openai() -> Self {
        Self {
            stream: true,
            stream_tool_choice: true,
            stream_usage: true,
            finish_reasons: true,
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            empty_content: false,
            reasoning_content: false,
            output_format: OutputFormat::JsonSchema,
            explicit_tool_choice: false,
            strict_tools: true,
            top_k: false,
        }
    }

    /// Returns the profile of an OpenAI-compatible server, such as vLLM, llama.cpp, Ollama or LM
    /// Studio.
    #[must_use]
    pub fn compatible() -> Self {
        Self {
            max_tokens_field: MaxTokensField::MaxTokens,
            strict_tools: false,
            top_k: true,
            ..Self::openai()
        }
    }

    /// Returns the profile of the server of llama.cpp's Python bindings (`python -m
    /// llama_cpp.server`).
    #[must_use]
    pub fn llama_cpp_python() -> Self {
        Self {
            stream_tool_choice: false,
            empty_content: true,
            output_format: OutputFormat::JsonObject,
            explicit_tool_choice: true,
            ..Self::compatible()
        }
    }

    /// Returns the profile of a known host, and otherwise that of a compatible server.
    pub(crate) fn of_host(host: &str) -> Self {
        match host {
            "api.deepseek.com" => Self { reasoning_content: true, ..Self::compatible() },
            host if is_openai(host) => Self::openai(),
            _ => Self::compatible(),
        }
    }

    /// Returns the cache key for the encoded messages of such a server. Profiles with the same
    /// encoding share it.
    pub(super) fn message_encoding(&self, keeps_data: bool) -> &'static str {
        match (self.empty_content, self.reasoning_content, keeps_data) {
            (false, false, true) => "openai_chat.message",
            (true, false, true) => "openai_chat.message.empty_content",
            (false, true, true) => "openai_chat.message.reasoning",
            (true, true, true) => "openai_chat.message.empty_content.reasoning",
            (false, false, false) => "openai_chat.foreign_reply",
            (true, false, false) => "openai_chat.foreign_reply.empty_content",
            (false, true, false) => "openai_chat.foreign_reply.reasoning",
            (true, true, false) => "openai_chat.foreign_reply.empty_content.reasoning",
        }
    }

    pub(super) fn format_encoding(&self) -> &'static str {
        match self.output_format {
            OutputFormat::JsonObject => "openai_chat.format.json_object",
            _ => "openai_chat.format",
        }
    }

    pub(super) fn tool_encoding(&self) -> &'static str {
        if self.strict_tools { "openai_chat.tools.strict" } else { "openai_chat.tools" }
    }
}

/// Returns `true` for OpenAI's own hosts.
pub(crate) fn is_openai(host: &str) -> bool {
    host == "api.openai.com" || host.ends_with(".api.openai.com")
}
