//! Which commands may be asked for, and which file a program's name stands for.

use std::env;
use std::path::{Path, PathBuf};

use helix_agents::tool::ToolError;
use rustix::fs::{Access, access};

use super::Wanted;

/// The commands of an agent file, word by word.
#[derive(Debug)]
pub(super) struct Allowed(Vec<Vec<String>>);

impl Allowed {
    /// Reads the list.
    ///
    /// # Errors
    /// What is wrong with which entry.
    pub(super) fn new(entries: &[String]) -> Result<Self, Vec<(usize, String)>> {
        let (mut all, mut problems) = (Vec::new(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let words: Vec<_> = entry.split_whitespace().map(str::to_owned).collect();
            match words.first() {
                None => problems.push((index, "there is no program in it".to_owned())),
                Some(program) if program.contains('/') && !program.starts_with('/') => {
                    // Whoever writes in the folder would choose what runs.
                    problems.push((
                        index,
                        format!("`{program}` must be a name that PATH finds, or an absolute path"),
                    ));
                }
                Some(_) => all.push(words),
            }
        }
        if problems.is_empty() { Ok(Self(all)) } else { Err(problems) }
    }

    /// Whether a command is one of them.
    pub(super) fn has(&self, wanted: &Wanted) -> bool {
        self.0.iter().any(|words| {
            let given = std::iter::once(&wanted.program).chain(&wanted.arguments);
            words.len() <= 1 + wanted.arguments.len()
                && words.iter().zip(given).all(|(a, b)| a == b)
        })
    }

    /// The program of a command that is one of them.
    ///
    /// # Errors
    /// For the model: that it is none of them, or that there is no such program.
    pub(super) fn program(&self, wanted: &Wanted) -> Result<PathBuf, ToolError> {
        if !self.has(wanted) {
            let all: Vec<_> = self.0.iter().map(|words| words.join(" ")).collect();
            return Err(ToolError::new(format!(
                "this command is not allowed, and was not run; these are, with any further \
                 arguments: {}",
                all.join("; ")
            )));
        }
        let name = Path::new(&wanted.program);
        let missing = || ToolError::new(format!("there is no program `{}` here", wanted.program));
        if name.is_absolute() {
            return is_program(name).then(|| name.to_owned()).ok_or_else(missing);
        }
        folders().map(|it| it.join(name)).find(|it| is_program(it)).ok_or_else(missing)
    }
}

/// The folders that programs are looked for in. One that is relative would be the agent's.
pub(super) fn folders() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).filter(|it| it.is_absolute()).collect();
    folders.into_iter()
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
