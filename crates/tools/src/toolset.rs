//! The tools of an agent, collected from several builders.

use helix_agents_core::agent::AgentBuilder;
use helix_agents_core::tool::Tool;

use crate::SettingsError;
use crate::calculator::CalculatorTool;
use crate::files::FileTools;
use crate::http::HttpTool;
use crate::note::NoteTool;
use crate::shell::ShellTool;
use crate::time::TimeTool;

/// The tools of an agent, in the order in which they were added.
///
/// # Examples
///
/// ```
/// use helix_agents_tools::Toolset;
/// use helix_agents_tools::shell::ShellTool;
///
/// # fn main() -> Result<(), helix_agents_core::error::Error> {
/// let shell = ShellTool::new(".", ["ls", "cargo test"]);
/// let tools = Toolset::new().calculator().shell(&shell)?;
/// let names: Vec<_> = tools.iter().map(|tool| tool.name().to_string()).collect();
/// assert_eq!(names, ["calculate", "shell"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Toolset {
    tools: Vec<Tool>,
}

impl Toolset {
    /// Creates a set without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `list_files`, `read_file` and, if it is enabled, `write_file`.
    #[must_use]
    pub fn files(mut self, files: &FileTools) -> Self {
        self.tools.extend(files.tools());
        self
    }

    /// Adds `http_get`.
    ///
    /// # Errors
    /// Returns the errors of [`HttpTool::tool`].
    pub fn http(self, http: &HttpTool) -> Result<Self, SettingsError> {
        Ok(self.tool(http.tool()?))
    }

    /// Adds `shell`.
    ///
    /// # Errors
    /// Returns the errors of [`ShellTool::tool`].
    pub fn shell(self, shell: &ShellTool) -> Result<Self, SettingsError> {
        Ok(self.tool(shell.tool()?))
    }

    /// Adds `calculate`.
    #[must_use]
    pub fn calculator(self) -> Self {
        self.tool(CalculatorTool::new().tool())
    }

    /// Adds `current_time`.
    ///
    /// # Errors
    /// Returns the errors of [`TimeTool::tool`].
    pub fn time(self, time: &TimeTool) -> Result<Self, SettingsError> {
        Ok(self.tool(time.tool()?))
    }

    /// Adds `note`. The state of the agent must be [`Notes`](crate::note::Notes).
    #[must_use]
    pub fn note(self, note: NoteTool) -> Self {
        self.tool(note.tool())
    }

    /// Adds another tool.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<Tool>) -> Self {
        self.tools.push(tool.into());
        self
    }

    /// Iterates over the tools.
    pub fn iter(&self) -> std::slice::Iter<'_, Tool> {
        self.tools.iter()
    }

    /// Adds the tools to an agent.
    pub fn add_to<O>(self, agent: AgentBuilder<O>) -> AgentBuilder<O> {
        self.into_iter().fold(agent, AgentBuilder::tool)
    }
}

impl IntoIterator for Toolset {
    type Item = Tool;
    type IntoIter = std::vec::IntoIter<Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.tools.into_iter()
    }
}

impl<'a> IntoIterator for &'a Toolset {
    type Item = &'a Tool;
    type IntoIter = std::slice::Iter<'a, Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
