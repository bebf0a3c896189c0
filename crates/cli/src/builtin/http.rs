//! The tool `http_get`: text from the listed hosts.
//!
//! A prompt injection must not make the model explore the network that it runs in. Therefore every
//! address is checked when a connection is made, regardless of the name, redirect or DNS answer that
//! led to it, and only plain GET requests are sent.

mod body;
mod fetch;
mod policy;

use std::sync::Arc;
use std::time::Duration;

use helix_agents::error::Result;
use helix_agents::tool::{EffectClass, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::fetch::Fetcher;
use self::policy::Policy;
use super::if_approved;
use crate::agent_file::{Period, SourceMap};

/// The time that the tool call may take beyond its own timeout, so that the tool reports the timeout
/// itself.
const MARGIN: Duration = Duration::from_secs(5);

/// The maximum length of a URL in bytes.
const MAX_URL_BYTES: usize = 2000;
/// The maximum length of other text from a server, such as header values, in characters.
const MAX_CHARS: usize = 200;

/// HTTP GET requests to the listed hosts.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpConfig {
    /// Allowed hosts, with a port if it is not the default one: `api.example.com`, `*.example.org` for all
    /// subdomains, `127.0.0.1:8080`. Private addresses have to be listed explicitly.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 300)))]
    hosts: Vec<String>,
    /// Private address ranges that the names in `hosts` may resolve to.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(min = 1, max = 50)))]
    private: Vec<String>,
    /// The timeout of a request, including redirects.
    #[serde(default = "default_timeout")]
    timeout: Period,
    /// The maximum size of a response in bytes; the rest is omitted.
    #[serde(default = "default_max_bytes")]
    #[schemars(range(min = 1, max = 1_048_576))]
    max_bytes: usize,
    /// Whether a user has to approve each request, and may edit its URL.
    #[serde(default)]
    requires_approval: bool,
}

fn default_timeout() -> Period {
    Period(Duration::from_secs(20))
}

fn default_max_bytes() -> usize {
    100_000
}

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct GetInput {
    /// The full URL, starting with https:// or http://.
    #[schemars(length(min = 1, max = 2000))]
    url: String,
}

impl HttpConfig {
    /// Creates the tool.
    ///
    /// # Errors
    /// If a host or an address range is invalid.
    pub(super) fn tool(&self, source_map: &SourceMap) -> Result<Tool> {
        let policy = self.policy().map_err(|problems| {
            let place =
                |(pointer, problem)| source_map.problem(&format!("/tools/http/{pointer}"), problem);
            source_map.error(problems.into_iter().map(place).collect())
        })?;
        Ok(self.tool_of(Fetcher::new(policy, self.max_bytes, self.timeout.0)))
    }

    fn policy(&self) -> std::result::Result<Policy, Vec<(String, String)>> {
        Policy::new(&self.hosts, &self.private)
    }

    fn tool_of(&self, fetcher: Fetcher) -> Tool {
        let description = format!(
            "Fetch a web page or an API response by HTTP GET. Returns text such as HTML, JSON or plain \
             text unchanged. Only these hosts can be reached: {}.",
            self.hosts.join(", ")
        );
        let fetcher = Arc::new(fetcher);
        let run = move |wanted: GetInput, _: ToolContext| {
            let fetcher = Arc::clone(&fetcher);
            async move { fetcher.get(&wanted.url).await.map_err(ToolError::new) }
        };
        let tool = Tool::function("http_get", &description, run)
            .effect(EffectClass::Pure)
            .timeout(self.timeout.0 + MARGIN);
        if_approved(tool, self.requires_approval)
    }
}

#[cfg(test)]
mod tests;
