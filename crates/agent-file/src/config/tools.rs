//! The tables of an agent file below `[tools]`.

use helix_agents_tools::{files, http, note, shell, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Period;

/// Access to files below one folder.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilesConfig {
    /// The folder: the agent file's own (`.`) or one below it. With `write`, it must contain neither the
    /// agent file nor a file that it references. `helix run --files` overrides it with any folder.
    #[schemars(length(min = 1))]
    pub(crate) root: String,
    /// Whether the agent may also write files.
    #[serde(default)]
    pub(crate) write: bool,
    /// Whether a user has to approve each `write_file` call, and may edit its arguments.
    #[serde(default)]
    pub(crate) requires_approval: bool,
    /// The maximum number of bytes that one call reads or writes.
    #[serde(default = "default_file_bytes")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub(crate) max_bytes: usize,
}

fn default_file_bytes() -> usize {
    files::DEFAULT_MAX_BYTES
}

/// HTTP GET requests to the listed hosts.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpConfig {
    /// Allowed hosts, with a port if it is not the default one: `api.example.com`, `*.example.org` for all
    /// subdomains, `127.0.0.1:8080`. Private addresses have to be listed explicitly.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 300)))]
    pub(crate) hosts: Vec<String>,
    /// Private address ranges that the names in `hosts` may resolve to.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(min = 1, max = 50)))]
    pub(crate) private: Vec<String>,
    /// The timeout of a request, including redirects.
    #[serde(default = "default_request_timeout")]
    pub(crate) timeout: Period,
    /// The maximum size of a response in bytes; the rest is omitted.
    #[serde(default = "default_body_bytes")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub(crate) max_bytes: usize,
    /// Whether a user has to approve each request, and may edit its URL.
    #[serde(default)]
    pub(crate) requires_approval: bool,
}

fn default_request_timeout() -> Period {
    Period(http::DEFAULT_TIMEOUT)
}

fn default_body_bytes() -> usize {
    http::DEFAULT_MAX_BYTES
}

/// The calculator. It has no settings.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalculatorConfig {}

/// The date and time.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TimeConfig {
    /// The default time zone, as an IANA name. The model can request another one.
    #[schemars(length(min = 1, max = 64), example = &"Europe/Berlin")]
    pub(crate) zone: String,
}

impl Default for TimeConfig {
    fn default() -> Self {
        Self { zone: time::DEFAULT_ZONE.to_owned() }
    }
}

/// Notes that stay in the system prompt for the whole session.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NoteConfig {
    /// The maximum number of notes.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) max_notes: usize,
    /// The maximum length of a note in characters.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) max_chars: usize,
}

impl Default for NoteConfig {
    fn default() -> Self {
        Self { max_notes: note::DEFAULT_MAX_NOTES, max_chars: note::DEFAULT_MAX_CHARS }
    }
}

/// Commands on this machine. Each call waits until a user has approved it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShellConfig {
    /// The working directory of commands: the agent file's own folder (`.`) or one below it. Commands can
    /// access files outside it.
    #[serde(default = "default_root")]
    #[schemars(length(min = 1))]
    pub(crate) root: String,
    /// The allowed commands: programs (`ls`), or programs with their first arguments (`cargo test`). Any
    /// further arguments are allowed.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 300)))]
    pub(crate) allow: Vec<String>,
    /// The number of seconds that a command may run before it and all processes that it started are killed.
    #[serde(default = "default_command_timeout")]
    #[schemars(range(min = 1, max = 3600))]
    pub(crate) timeout_seconds: u64,
    /// The maximum size in bytes of the standard output and of the standard error; the rest is omitted.
    #[serde(default = "default_output_bytes")]
    #[schemars(range(min = 1, max = 131_072))]
    pub(crate) max_output_bytes: usize,
}

fn default_root() -> String {
    ".".to_owned()
}

fn default_command_timeout() -> u64 {
    shell::DEFAULT_TIMEOUT.as_secs()
}

fn default_output_bytes() -> usize {
    shell::DEFAULT_MAX_OUTPUT_BYTES
}
