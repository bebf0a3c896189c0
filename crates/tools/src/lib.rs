//! Built-in tools for agents: files below one folder, HTTP GET requests to listed hosts, listed commands, arithmetic,
//! the current time, and notes.
//!
//! Each module has one builder with plain settings that creates the [`Tool`]s of its
//! subject. [`Toolset`] collects the tools of several builders for an agent.
//!
//! | builder | tools | access |
//! |---|---|---|
//! | [`FileTools`](files::FileTools) | `list_files`, `read_file`, `write_file` | one folder; writing only if it is enabled |
//! | [`HttpTool`](http::HttpTool) | `http_get` | the listed hosts; private addresses only if they are listed |
//! | [`ShellTool`](shell::ShellTool) | `shell` | the listed commands; a user approves each one |
//! | [`CalculatorTool`](calculator::CalculatorTool) | `calculate` | none |
//! | [`TimeTool`](time::TimeTool) | `current_time` | the clock |
//! | [`NoteTool`](note::NoteTool) | `note` | the state of the session |
//!
//! The arguments of every call are untrusted, because a model writes them. Each tool checks them when it is called,
//! limits the size of its result, and reports a rejected call to the model with the reason.
//!
//! # Examples
//!
//! ```
//! use helix_agents_core::agent::Agent;
//! use helix_agents_tools::Toolset;
//! use helix_agents_tools::files::FileTools;
//! use helix_agents_tools::http::HttpTool;
//!
//! # fn main() -> Result<(), helix_agents_core::error::Error> {
//! # let folder = std::env::temp_dir();
//! let tools = Toolset::new()
//!     .files(&FileTools::open(folder)?.writable().requires_approval())
//!     .http(&HttpTool::new(["api.example.com", "*.example.org"]))?
//!     .calculator();
//! let agent = tools.add_to(Agent::builder("clerk").system_prompt("Keep the books.")).build()?;
//! assert!(agent.definition().tool("write_file").is_some());
//! assert!(agent.definition().tool("http_get").is_some());
//! # Ok(())
//! # }
//! ```

pub mod calculator;
pub mod files;
pub mod http;
pub mod note;
pub mod number;
pub mod safe_read;
mod settings;
pub mod shell;
pub mod text;
pub mod time;
mod toolset;

pub use settings::{SettingProblem, SettingsError};
pub use toolset::Toolset;

use helix_agents_core::tool::Tool;

/// Makes each call of the tool require an approval with editable arguments, if `wanted`.
fn if_approved(tool: Tool, wanted: bool) -> Tool {
    if wanted { tool.requires_approval().editable() } else { tool }
}
