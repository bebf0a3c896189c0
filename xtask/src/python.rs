//! Programs from Python packages, in virtual environments.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::process;

/// The file that marks a completely installed environment.
const MARKER: &str = "helix-agents-installed";

/// A virtual environment.
#[derive(Debug)]
pub(crate) struct Environment(PathBuf);

impl Environment {
    /// Returns the environment in a folder, which may not exist yet.
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Returns the environment with this name in the user's cache folder, which may not exist yet.
    pub(crate) fn named(name: &str) -> Result<Self> {
        let set =
            |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
        let base = base.context("neither XDG_CACHE_HOME nor HOME is set")?;
        Ok(Self(base.join("helix-agents").join(name)))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a program in the environment.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.0.join("bin").join(name)
    }

    pub(crate) fn python(&self) -> PathBuf {
        self.program("python")
    }

    /// Returns `true` if exactly these packages are installed.
    pub(crate) fn has(&self, wanted: &str) -> bool {
        std::fs::read_to_string(self.0.join(MARKER)).is_ok_and(|mark| mark == wanted)
    }

    /// Creates the environment, or clears it.
    pub(crate) fn create(&self) -> Result<()> {
        let folder = self.0.parent().context("an environment needs a folder")?;
        std::fs::create_dir_all(folder)
            .with_context(|| format!("could not create {}", folder.display()))?;
        let path = self.0.to_string_lossy();
        process::run(&mut process::program("python3", ["-m", "venv", "--clear", &path]))
    }

    /// Installs packages, with these environment variables.
    pub(crate) fn pip(&self, args: &[&str], variables: &[(&str, &str)]) -> Result<()> {
        let base = ["-m", "pip", "install", "--disable-pip-version-check"];
        let mut pip = process::program(self.python(), base.iter().chain(args));
        process::run(pip.envs(variables.iter().copied()))
    }

    /// Marks the environment as completely installed.
    pub(crate) fn mark_complete(&self, wanted: &str) -> Result<()> {
        std::fs::write(self.0.join(MARKER), wanted).context("could not mark the installation")
    }
}

/// Returns `true` if there is a Python that can create environments.
pub(crate) fn can_create_environments() -> bool {
    process::succeeds(&mut process::program("python3", ["-c", "import ensurepip, venv"]))
}
