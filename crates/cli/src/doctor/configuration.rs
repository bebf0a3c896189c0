//! The configuration from the environment and `helix.toml`.

use std::io;

use helix_agents::providers::{CONFIG_FILE, ConfigDiagnosis, VariableState};
use serde::Serialize;

use super::page::Page;
use crate::{env, storage};

/// The configuration.
#[derive(Debug, Serialize)]
pub(super) struct Configuration {
    variables: Vec<VariableState>,
    #[serde(flatten)]
    pub(super) diagnosis: ConfigDiagnosis,
}

impl Configuration {
    pub(super) fn check() -> Self {
        let variables = env::everything().map(|variable| {
            let mut state = VariableState::from(variable);
            // The URL of a database may contain a password.
            state.value = state.value.map(|value| storage::shown(value.as_ref()));
            state
        });
        Self { variables: variables.collect(), diagnosis: ConfigDiagnosis::check() }
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
        let ConfigDiagnosis { file, error, .. } = &self.diagnosis;
        let path = file.path.display();
        let state = match error {
            Some(error) => error.message.clone(),
            None if file.found => format!("{path}: valid"),
            None => format!("none ({path})"),
        };
        page.row(CONFIG_FILE, &state)
    }
}
