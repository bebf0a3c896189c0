//! What a profile means for those who write agents, in words.

use super::profile::{OutputFormat, ServerProfile};

/// One thing that a server does or does not do, and what becomes of a wish for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTrait {
    /// Its stable name, for programs.
    pub name: &'static str,
    /// Whether the server does it.
    pub honoured: bool,
    /// What that means.
    pub meaning: &'static str,
}

impl ServerProfile {
    /// What agents notice of the profile. Strict output and prompt caching are hints: without them
    /// a call is made all the same. What else a server does not do is refused when a run starts.
    #[must_use]
    pub fn traits(&self) -> Vec<ServerTrait> {
        vec![
            choose(
                "streaming",
                self.stream,
                "text is shown as it is written",
                "a reply is shown once it is whole",
            ),
            choose(
                "streaming_with_tools",
                self.stream && self.stream_tool_choice,
                "replies that may call tools are streamed as well",
                "a reply that may call tools is shown once it is whole",
            ),
            choose(
                "stream_usage",
                self.stream && self.stream_usage,
                "token counts come at the end of a stream",
                "streamed replies count no tokens",
            ),
            choose(
                "strict_output",
                self.strict_tools,
                "`strict_output` constrains what the model hands in to its schema",
                "`strict_output` is left out of requests; what the model hands in is checked here",
            ),
            self.native_output(),
            choose(
                "top_k",
                self.top_k,
                "`top_k` is passed on",
                "`top_k` is refused when a run starts",
            ),
            ServerTrait {
                name: "prompt_caching",
                honoured: false,
                meaning: "no request asks for it; what the server caches by itself is counted",
            },
        ]
    }

    fn native_output(&self) -> ServerTrait {
        let (honoured, meaning) = match self.output_format {
            OutputFormat::JsonSchema => {
                (true, "`native_output` is asked for as `response_format: json_schema`")
            }
            OutputFormat::JsonObject => (
                true,
                "`native_output` is asked for as `response_format: json_object` with a schema",
            ),
            OutputFormat::Unsupported => {
                (false, "`native_output` is refused when a run starts; do without it")
            }
        };
        ServerTrait { name: "native_output", honoured, meaning }
    }
}

fn choose(
    name: &'static str,
    honoured: bool,
    with: &'static str,
    without: &'static str,
) -> ServerTrait {
    ServerTrait { name, honoured, meaning: if honoured { with } else { without } }
}
