//! What a server of this protocol can do, and where it differs from OpenAI.

use serde::Deserialize;

/// The field that limits the length of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`, which every server but OpenAI's newer models takes.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// How a JSON schema for the output is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// `{"type": "json_schema", …}`, as OpenAI documents it.
    JsonSchema,
    /// `{"type": "json_object", "schema": …}`, the older form of llama.cpp's Python server.
    JsonObject,
    /// Not at all: `native_output` is refused.
    Unsupported,
}

/// What a server can do. Start from one of the constructors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerProfile {
    /// Whether replies are streamed.
    pub stream: bool,
    /// Whether replies for which the model may choose tools are streamed as well.
    pub stream_tool_choice: bool,
    /// Whether the request asks for token counts at the end of a stream.
    pub stream_usage: bool,
    /// The field that limits the length of a reply.
    pub max_tokens_field: MaxTokensField,
    /// Whether a message of calls alone has the content `""`, because the server refuses `null`.
    pub empty_content: bool,
    /// How a JSON schema for the output is asked for.
    pub output_format: OutputFormat,
    /// Whether the request says that the model may choose tools, because the server takes silence
    /// for a no.
    pub explicit_tool_choice: bool,
    /// Whether tools may carry `strict`.
    pub strict_tools: bool,
    /// Whether the server samples by `top_k`.
    pub top_k: bool,
}

impl ServerProfile {
    /// OpenAI itself.
    #[must_use]
    pub fn openai() -> Self {
        Self {
            stream: true,
            stream_tool_choice: true,
            stream_usage: true,
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            empty_content: false,
            output_format: OutputFormat::JsonSchema,
            explicit_tool_choice: false,
            strict_tools: true,
            top_k: false,
        }
    }

    /// A server that imitates OpenAI: vLLM, llama.cpp, Ollama, LM Studio and the like.
    #[must_use]
    pub fn compatible() -> Self {
        Self {
            max_tokens_field: MaxTokensField::MaxTokens,
            strict_tools: false,
            top_k: true,
            ..Self::openai()
        }
    }

    /// The server of llama.cpp's Python bindings (`python -m llama_cpp.server`).
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

    /// OpenAI's profile for OpenAI's address, else that of a compatible server.
    pub(super) fn of_address(base_url: &str) -> Self {
        let url = reqwest::Url::parse(base_url.trim()).ok();
        let host = url.as_ref().and_then(reqwest::Url::host_str);
        match host {
            Some(host) if host == "api.openai.com" || host.ends_with(".api.openai.com") => {
                Self::openai()
            }
            _ => Self::compatible(),
        }
    }

    /// The name under which messages and tools of such a server keep their bytes. Profiles that
    /// encode them alike share it.
    pub(super) fn message_encoding(&self) -> &'static str {
        if self.empty_content { "openai_chat.message.empty_content" } else { "openai_chat.message" }
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
