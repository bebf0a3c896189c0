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

use helix_agents_core::tool::{EffectClass, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use self::fetch::Fetcher;
use self::policy::Policy;
use crate::{SettingProblem, SettingsError, if_approved};

/// The time that the tool call may take beyond its own timeout, so that the tool reports the timeout
/// itself.
const MARGIN: Duration = Duration::from_secs(5);

/// The maximum length of a URL in bytes.
const MAX_URL_BYTES: usize = 2000;
/// The maximum length of other text from a server, such as header values, in characters.
const MAX_CHARS: usize = 200;

/// The name of the tool.
const NAME: &str = "http_get";

/// The default of [`HttpTool::timeout`].
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);
/// The default of [`HttpTool::max_bytes`].
pub const DEFAULT_MAX_BYTES: usize = 100_000;

/// The tool `http_get`: HTTP GET requests to the listed hosts.
///
/// # Examples
///
/// ```
/// use helix_agents_tools::http::HttpTool;
///
/// let http = HttpTool::new(["api.example.com", "intranet.example.com"]).private_ranges(["10.0.0.0/8"]);
/// assert!(http.tool().is_ok());
/// assert!(HttpTool::new(["https://example.com/"]).tool().is_err());
/// ```
#[derive(Debug, Clone)]
pub struct HttpTool {
    hosts: Vec<String>,
    private: Vec<String>,
    timeout: Duration,
    max_bytes: usize,
    requires_approval: bool,
}

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
struct GetInput {
    /// The full URL, starting with https:// or http://.
    #[schemars(length(min = 1, max = 2000))]
    url: String,
}

impl HttpTool {
    /// Allows these hosts, with a port if it is not the default one: `api.example.com`, `*.example.org` for all
    /// subdomains, `127.0.0.1:8080`. Private addresses have to be listed explicitly.
    pub fn new(hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            hosts: hosts.into_iter().map(Into::into).collect(),
            private: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            max_bytes: DEFAULT_MAX_BYTES,
            requires_approval: false,
        }
    }

    /// Sets the private address ranges that the names of hosts may resolve to, such as `10.0.0.0/8`. Default: none.
    #[must_use]
    pub fn private_ranges(mut self, ranges: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.private = ranges.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the timeout of a request, including redirects. Default: 20 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum size of a response in bytes; the rest is omitted. Default: 100,000.
    #[must_use]
    pub fn max_bytes(mut self, most: usize) -> Self {
        self.max_bytes = most;
        self
    }

    /// Makes each request require an approval. The approver may edit its URL.
    #[must_use]
    pub fn requires_approval(mut self) -> Self {
        self.requires_approval = true;
        self
    }

    /// Creates the tool.
    ///
    /// # Errors
    /// Returns the invalid items of `hosts` and `private`.
    pub fn tool(&self) -> Result<Tool, SettingsError> {
        let policy = Policy::new(&self.hosts, &self.private).map_err(|problems| {
            let problems = problems.into_iter();
            let problems = problems.map(|(setting, problem)| SettingProblem::new(setting, problem));
            SettingsError::new(NAME, problems.collect())
        })?;
        Ok(self.tool_of(Fetcher::new(policy, self.max_bytes, self.timeout)))
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
        let tool = Tool::function(NAME, &description, run)
            .effect(EffectClass::Pure)
            .timeout(self.timeout + MARGIN);
        if_approved(tool, self.requires_approval)
    }
}

#[cfg(test)]
mod tests;
