//! `models` in `helix.toml`: the capabilities of single models.

use std::collections::BTreeMap;

use helix_agents_core::error::Result;
use toml::{Table, Value};

use super::invalid;
use crate::capability::ModelCapabilities;

/// Sets the members that the file omits to those of the known model. `providers` has the models of each provider.
pub(super) fn complete<'a>(
    providers: impl Iterator<Item = (&'a String, &'a mut BTreeMap<String, ModelCapabilities>)>,
    file: &str,
) -> Result<()> {
    let mut models_of = providers.filter(|(_, models)| !models.is_empty()).peekable();
    if models_of.peek().is_none() {
        return Ok(());
    }
    let file: Table = toml::from_str(file).map_err(|error| invalid(error.message().to_owned()))?;
    for (provider, models) in models_of {
        for (model, capabilities) in models {
            let Some(known) = ModelCapabilities::of(model) else { continue };
            let path = ["providers", provider, "models", model];
            let given = table(&file, &path).into_iter().flatten();
            let given = given.map(|(name, value)| (name.clone(), value.clone()));
            let cannot_merge = |problem: &str| {
                invalid(format!("the capabilities of the model `{model}`: {problem}"))
            };
            let known = Table::try_from(known);
            let mut merged = known.map_err(|error| cannot_merge(&error.to_string()))?;
            merged.extend(given);
            *capabilities = merged
                .try_into()
                .map_err(|error: toml::de::Error| cannot_merge(error.message()))?;
        }
    }
    Ok(())
}

/// Returns the table at this path.
fn table<'a>(file: &'a Table, path: &[&str]) -> Option<&'a Table> {
    path.iter().try_fold(file, |table, name| table.get(*name).and_then(Value::as_table))
}
