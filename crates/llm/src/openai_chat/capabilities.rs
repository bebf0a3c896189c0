//! Descriptions of a profile for authors of agents.

use serde::Serialize;

use super::profile::{OutputFormat, ServerProfile};

/// A capability that a server has or lacks, and the consequence for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerCapability {
    /// The stable name of the capability, for programs.
    pub name: &'static str,
    /// Whether the server has the capability.
    pub supported: bool,
    /// The consequence for requests.
    pub meaning: &'static str,
}

impl ServerProfile {
    /// Returns the capabilities that matter to agents. Strict output and prompt caching are
    /// optional: without them, a call is still made. Other missing capabilities are rejected when a
    /// run starts.
    #[must_use]
    pub fn capabilities(&self) -> Vec<ServerCapability> {
        vec![
            choose(
                "streaming",
                self.stream,
                "text is shown while the model writes it",
                "a reply is shown once it is complete",
            ),
            choose(
                "streaming_with_tools",
                self.stream && self.stream_tool_choice,
                "replies that may call tools are streamed as well",
                "a reply that may call tools is shown once it is complete",
            ),
            choose(
                "stream_usage",
                self.stream && self.stream_usage,
                "token counts arrive at the end of a stream",
                "streamed replies have no token counts",
            ),
            choose(
                "strict_output",
                self.strict_tools,
                "`strict_output` constrains the model's output to its schema",
                "`strict_output` is omitted from requests; the output is checked afterwards",
            ),
            self.native_output(),
            choose(
                "top_k",
                self.top_k,
                "`top_k` is passed on",
                "`top_k` is rejected when a run starts",
            ),
            ServerCapability {
                name: "prompt_caching",
                supported: false,
                meaning: "requests do not ask for it; automatically cached tokens are counted",
            },
        ]
    }

    fn native_output(&self) -> ServerCapability {
        let (supported, meaning) = match self.output_format {
            OutputFormat::JsonSchema => {
                (true, "`native_output` is requested as `response_format: json_schema`")
            }
            OutputFormat::JsonObject => (
                true,
                "`native_output` is requested as `response_format: json_object` with a schema",
            ),
            OutputFormat::Unsupported => (false, "`native_output` is rejected when a run starts"),
        };
        ServerCapability { name: "native_output", supported, meaning }
    }
}

fn choose(
    name: &'static str,
    supported: bool,
    with: &'static str,
    without: &'static str,
) -> ServerCapability {
    ServerCapability { name, supported, meaning: if supported { with } else { without } }
}
