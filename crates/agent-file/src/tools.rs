//! The tools that an agent file enables, except `note`, which needs the agent's state.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use helix_agents_core::clock::Clock;
use helix_agents_core::error::Result;
use helix_agents_tools::files::FileTools;
use helix_agents_tools::http::HttpTool;
use helix_agents_tools::shell::ShellTool;
use helix_agents_tools::time::TimeTool;
use helix_agents_tools::{SettingsError, Toolset};

use crate::clock::SharedClock;
use crate::config::{FilesConfig, HttpConfig, ShellConfig, TimeConfig};
use crate::document::AgentFile;
use crate::source_map::SourceMap;

/// The JSON pointer of the folder of the file tools.
const FILES_ROOT: &str = "/tools/files/root";
/// The JSON pointer of the approval setting of the file tools.
const FILES_APPROVAL: &str = "/tools/files/requires_approval";
/// The JSON pointer of the working directory of commands.
const SHELL_ROOT: &str = "/tools/shell/root";

/// Creates the tools of an agent file. The file tools access the folder `chosen`, or the folder that the agent file
/// names.
///
/// # Errors
/// Returns [`AgentInvalid`](helix_agents_core::error::ErrorCode::AgentInvalid) if a tool cannot be set up.
pub(crate) fn tools(
    file: &AgentFile,
    chosen: Option<&Path>,
    clock: &Arc<dyn Clock>,
) -> Result<Toolset> {
    let config = &file.config.tools;
    let invalid = |table: &'static str| {
        move |error: SettingsError| settings_error(&file.source_map, table, &error)
    };
    let mut tools = Toolset::new();
    if let Some(files) = &config.files {
        tools = tools.files(&files.tools(file, chosen)?);
    }
    if let Some(http) = &config.http {
        tools = tools.http(&http.tool()).map_err(invalid("http"))?;
    }
    if config.calculator.is_some() {
        tools = tools.calculator();
    }
    if let Some(time) = &config.time {
        tools = tools.time(&time.tool(clock)).map_err(invalid("time"))?;
    }
    if let Some(shell) = &config.shell {
        tools = tools.shell(&shell.tool(file)?).map_err(invalid("shell"))?;
    }
    Ok(tools)
}

/// Adds the positions in the agent file to the problems of a tool's settings.
fn settings_error(
    source_map: &SourceMap,
    table: &str,
    error: &SettingsError,
) -> helix_agents_core::error::Error {
    let problems = error.problems().iter().map(|problem| {
        source_map.problem(&format!("/tools/{table}/{}", problem.setting), &*problem.message)
    });
    source_map.error(problems.collect())
}

impl FilesConfig {
    fn tools(&self, file: &AgentFile, chosen: Option<&Path>) -> Result<FileTools> {
        let refuse =
            |message| file.source_map.error(vec![file.source_map.problem(FILES_ROOT, message)]);
        let opened = match chosen {
            Some(folder) => Dir::open_ambient_dir(folder, ambient_authority()),
            None => file.folder().and_then(|folder| folder.open_dir(&self.root)),
        };
        let root = opened.map_err(|error| {
            let root = chosen.unwrap_or(Path::new(&self.root)).display();
            refuse(format!(
                "the folder `{root}` cannot be opened: {error} (an agent file may access its own \
                 folder and folders below it; `--files FOLDER` allows another one)"
            ))
        })?;
        if self.requires_approval && !self.write {
            let message = "`requires_approval` applies only to `write_file`: it needs `write`";
            return Err(file
                .source_map
                .error(vec![file.source_map.problem(FILES_APPROVAL, message)]));
        }
        let mut files = FileTools::new(root).max_bytes(self.max_bytes);
        if self.write {
            files = files.writable();
        }
        if self.requires_approval {
            files = files.requires_approval();
        }
        if self.write
            && let Some(own) = file.own.iter().find(|own| files.contains(own))
        {
            let own = own.file_name().unwrap_or(own.as_os_str()).display();
            return Err(refuse(format!(
                "`{own}` is in the folder that the agent may write to: the agent must not be able to \
                 replace its own agent file, prompt or schema; choose another folder that contains \
                 only data, such as `data`"
            )));
        }
        Ok(files)
    }
}

impl HttpConfig {
    fn tool(&self) -> HttpTool {
        let tool = HttpTool::new(&self.hosts)
            .private_ranges(&self.private)
            .timeout(self.timeout.0)
            .max_bytes(self.max_bytes);
        if self.requires_approval { tool.requires_approval() } else { tool }
    }
}

impl TimeConfig {
    fn tool(&self, clock: &Arc<dyn Clock>) -> TimeTool {
        TimeTool::new(SharedClock(Arc::clone(clock))).zone(&self.zone)
    }
}

impl ShellConfig {
    fn tool(&self, file: &AgentFile) -> Result<ShellTool> {
        let folder = self.folder(file)?;
        Ok(ShellTool::new(folder, &self.allow)
            .timeout(Duration::from_secs(self.timeout_seconds))
            .max_output_bytes(self.max_output_bytes))
    }

    fn folder(&self, file: &AgentFile) -> Result<PathBuf> {
        let refuse = |problem: String| {
            let message = format!(
                "the folder `{}` cannot be used: {problem} (commands run in the agent file's own \
                 folder or one below it)",
                self.root
            );
            file.source_map.error(vec![file.source_map.problem(SHELL_ROOT, message)])
        };
        // Opening the folder below the file's folder rejects paths that lead out of it.
        let opened = file.folder().and_then(|folder| folder.open_dir(&self.root));
        opened.map_err(|error| refuse(error.to_string()))?;
        let own = file.path().parent().map(|folder| folder.join(&self.root));
        let own = own.unwrap_or_else(|| PathBuf::from(&self.root));
        own.canonicalize().map_err(|error| refuse(error.to_string()))
    }
}
