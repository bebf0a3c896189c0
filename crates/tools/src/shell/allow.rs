//! The list of allowed commands, and the lookup of programs in PATH.

use std::env;
use std::path::{Path, PathBuf};

use helix_agents_core::tool::ToolError;
use rustix::fs::{Access, access};

use super::CommandInput;

/// The allowed commands, each as a list of words.
#[derive(Debug)]
pub(super) struct Allowed(Vec<Vec<String>>);

impl Allowed {
    /// Parses the list.
    ///
    /// # Errors
    /// Returns the index and the problem of each invalid entry.
    pub(super) fn new(entries: &[String]) -> Result<Self, Vec<(usize, String)>> {
        let (mut all, mut problems) = (Vec::new(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let words: Vec<_> = entry.split_whitespace().map(str::to_owned).collect();
            match words.first() {
                None => problems.push((index, "the entry has no program".to_owned())),
                Some(program) if program.contains('/') && !program.starts_with('/') => {
                    // With a relative path, anyone who can write to the folder could choose the program.
                    problems.push((
                        index,
                        format!(
                            "`{program}` must be the name of a program in PATH, or an absolute path"
                        ),
                    ));
                }
                Some(_) => all.push(words),
            }
        }
        if problems.is_empty() { Ok(Self(all)) } else { Err(problems) }
    }

    /// Returns `true` if a command is allowed.
    pub(super) fn has(&self, command_input: &CommandInput) -> bool {
        self.0.iter().any(|words| {
            let given = std::iter::once(&command_input.program).chain(&command_input.arguments);
            words.len() <= 1 + command_input.arguments.len()
                && words.iter().zip(given).all(|(a, b)| a == b)
        })
    }

    /// Returns the path of the program of an allowed command.
    ///
    /// # Errors
    /// For the model, if the command is not allowed or the program does not exist.
    pub(super) fn program(&self, command_input: &CommandInput) -> Result<PathBuf, ToolError> {
        if !self.has(command_input) {
            let all: Vec<_> = self.0.iter().map(|words| words.join(" ")).collect();
            return Err(ToolError::new(format!(
                "this command is not allowed and was not run; the allowed commands, with any further \
                 arguments, are: {}",
                all.join("; ")
            )));
        }
        let name = Path::new(&command_input.program);
        let missing =
            || ToolError::new(format!("the program `{}` does not exist", command_input.program));
        if name.is_absolute() {
            return is_program(name).then(|| name.to_owned()).ok_or_else(missing);
        }
        folders().map(|folder| folder.join(name)).find(|path| is_program(path)).ok_or_else(missing)
    }
}

/// The absolute folders in PATH. Relative ones are skipped, because the agent could write to them.
pub(super) fn folders() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    folders.into_iter()
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
