//! `http_get`: text from the hosts that are listed.
//!
//! A model must not be talked into looking around in the network that it runs in. So every address
//! is checked when a connection is made, whatever name, redirect or answer of a name server led
//! there, and nothing but a plain GET is sent.

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
use crate::agent_file::{Period, Places};

/// How much longer than its own timeout the tool may take, so that it can tell of it itself.
const MARGIN: Duration = Duration::from_secs(5);

/// The longest address, and how much of anything else that a server says beside a page is told.
const MOST_URL_BYTES: usize = 2000;
const MOST_CHARS: usize = 200;

/// Pages of the hosts that are listed.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpForm {
    /// Hosts, each with a port if it is not the usual one: `api.example.com`, `*.example.org` for
    /// everything below it, `127.0.0.1:8080`. Private addresses have to be listed as such.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 300)))]
    hosts: Vec<String>,
    /// Ranges of private addresses that names among the hosts may lead to.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(min = 1, max = 50)))]
    private: Vec<String>,
    /// How long a page may take, redirects included.
    #[serde(default = "default_timeout")]
    timeout: Period,
    /// The most bytes of a page; the rest is left out.
    #[serde(default = "default_max_bytes")]
    #[schemars(range(min = 1, max = 1_048_576))]
    max_bytes: usize,
    /// Whether a person has to approve each page before it is fetched, and may change its address.
    #[serde(default)]
    requires_approval: bool,
}

fn default_timeout() -> Period {
    Period(Duration::from_secs(20))
}

fn default_max_bytes() -> usize {
    100_000
}

/// What to get.
#[derive(Debug, Deserialize, JsonSchema)]
struct Wanted {
    /// The whole address, beginning with https:// or http://.
    #[schemars(length(min = 1, max = 2000))]
    url: String,
}

impl HttpForm {
    /// The tool.
    ///
    /// # Errors
    /// If a host or a range is none.
    pub(super) fn tool(&self, places: &Places) -> Result<Tool> {
        let policy = self.policy().map_err(|problems| {
            let place =
                |(pointer, problem)| places.problem(&format!("/tools/http/{pointer}"), problem);
            places.error(problems.into_iter().map(place).collect())
        })?;
        Ok(self.tool_of(Fetcher::new(policy, self.max_bytes, self.timeout.0)))
    }

    fn policy(&self) -> std::result::Result<Policy, Vec<(String, String)>> {
        Policy::new(&self.hosts, &self.private)
    }

    fn tool_of(&self, fetcher: Fetcher) -> Tool {
        let description = format!(
            "Get a page or an answer of an interface by HTTP GET: text such as HTML, JSON or plain \
             text, as it is. Only these hosts can be reached: {}.",
            self.hosts.join(", ")
        );
        let fetcher = Arc::new(fetcher);
        let run = move |wanted: Wanted, _: ToolContext| {
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
