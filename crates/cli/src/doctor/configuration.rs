//! What the environment and `helix.toml` say.

use std::io;
use std::path::PathBuf;

use helix_agents::providers::{CONFIG_FILE, ProviderRegistry};
use serde::Serialize;

use super::finding::{Failed, Findings};
use super::page::Page;
use crate::{env, storage};

/// What is configured.
#[derive(Debug, Serialize)]
pub(super) struct Configuration {
    variables: Vec<Variable>,
    file: File,
    /// Why it cannot be used, if so.
    error: Option<Failed>,
    /// The providers that it describes, if it can be used.
    #[serde(skip)]
    pub(super) registry: Option<ProviderRegistry>,
}

/// An environment variable.
#[derive(Debug, Serialize)]
struct Variable {
    name: &'static str,
    is_set: bool,
    /// None where it may hold a secret.
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
    pub(super) fn look(findings: &mut Findings) -> Self {
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

/// All of them, with the values of those that are no secret.
fn variables() -> Vec<Variable> {
    let look = |variable: env::EnvVar| {
        let value = variable.text();
        Variable {
            name: variable.name,
            is_set: value.is_some(),
            value: value.filter(|_| !variable.is_secret).map(|it| storage::shown(it.as_ref())),
            doc: variable.doc,
        }
    };
    env::everything().map(look).collect()
}
