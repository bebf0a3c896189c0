//! Programs that come as Python packages, in environments of their own beside other caches.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::process;

/// Written into an environment once all of it is installed.
const MARK: &str = "helix-agents-installed";

/// One environment.
#[derive(Debug)]
pub(super) struct Environment(PathBuf);

impl Environment {
    /// The one of this name, whether it is there or not.
    pub(super) fn named(name: &str) -> Result<Self> {
        let set = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
        let base = base.context("neither XDG_CACHE_HOME nor HOME is set")?;
        Ok(Self(base.join("helix-agents").join(name)))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// A program in it.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.0.join("bin").join(name)
    }

    pub(super) fn python(&self) -> PathBuf {
        self.program("python")
    }

    /// Whether all that is wanted now was installed.
    pub(super) fn has(&self, wanted: &str) -> bool {
        std::fs::read_to_string(self.0.join(MARK)).is_ok_and(|mark| mark == wanted)
    }

    /// Makes it anew, empty.
    pub(super) fn create(&self) -> Result<()> {
        let folder = self.0.parent().context("no cache folder")?;
        std::fs::create_dir_all(folder)
            .with_context(|| format!("could not create {}", folder.display()))?;
        let path = self.0.to_string_lossy();
        process::run(&mut process::program("python3", ["-m", "venv", "--clear", &path]))
    }

    /// Installs packages, with these variables set.
    pub(super) fn pip(&self, args: &[&str], variables: &[(&str, &str)]) -> Result<()> {
        let base = ["-m", "pip", "install", "--disable-pip-version-check"];
        let mut pip = process::program(self.python(), base.iter().chain(args));
        process::run(pip.envs(variables.iter().copied()))
    }

    /// Notes that all that is wanted is installed.
    pub(super) fn is_complete(&self, wanted: &str) -> Result<()> {
        std::fs::write(self.0.join(MARK), wanted).context("could not mark the installation")
    }
}

/// Whether there is a Python that makes environments.
pub(super) fn makes_environments() -> bool {
    process::succeeds(&mut process::program("python3", ["-c", "import ensurepip, venv"]))
}
