//! The configuration from the environment and `helix.toml`.

use std::io;
use std::path::PathBuf;

use helix_agents::providers::{CONFIG_FILE, ProviderRegistry};
use serde::Serialize;

use super::finding::{Failed, Findings};
use super::page::Page;
use crate::{env, storage};

/// The configuration.
#[derive(Debug, Serialize)]
pub(super) struct Configuration {
    variables: Vec<Variable>,
    file: File,
    /// The error if the configuration is invalid.
    error: Option<Failed>,
    /// The configured providers, if the configuration is valid.
    #[serde(skip)]
    pub(super) registry: Option<ProviderRegistry>,
}

/// An environment variable.
#[derive(Debug, Serialize)]
struct Variable {
    name: &'static str,
    is_set: bool,
    /// The value; `None` if it may be a secret.
    value: Option<String>,
    doc: &'static str,
}

/// `helix.toml`.
#[derive(Debug, Serialize)]
struct File {
    path: PathBuf,
    found: bool,
}

impl Configuration {
    pub(super) fn check(findings: &mut Findings) -> Self {
        let path = std::path::absolute(CONFIG_FILE).unwrap_or_else(|_| CONFIG_FILE.into());
        let file = File { found: path.exists(), path };
        let (registry, error) = match ProviderRegistry::from_env() {
            Ok(registry) => (Some(registry), None),
            Err(error) => {
                let failed = Failed::from(&error);
                let remedy = if file.found {
                    "correct helix.toml, or the environment variables above"
                } else {
                    "correct OPENAI_BASE_URL and OPENAI_API_KEY"
                };
                findings.problem(failed.code, &*failed.message, remedy);
                (None, Some(failed))
            }
        };
        Self { variables: variables(), file, error, registry }
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.heading("Configuration")?;
        for variable in &self.variables {
            let state = match &variable.value {
                Some(value) => value,
                None if variable.is_set => "set",
                None => "not set",
            };
            page.row(variable.name, state)?;
        }
        let path = self.file.path.display();
        let state = match &self.error {
            Some(failed) => failed.message.clone(),
            None if self.file.found => format!("{path}: valid"),
            None => format!("none ({path})"),
        };
        page.row(CONFIG_FILE, &state)
    }
}

/// All environment variables, with the values of those that are not secret.
fn variables() -> Vec<Variable> {
    let check = |variable: env::EnvVar| {
        let value = variable.text();
        Variable {
            name: variable.name,
            is_set: value.is_some(),
            value: value
                .filter(|_| !variable.is_secret)
                .map(|value| storage::shown(value.as_ref())),
            doc: variable.doc,
        }
    };
    env::everything().map(check).collect()
}
