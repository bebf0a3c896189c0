//! The default model and the configured providers.

use std::io;

use helix_agents::providers::{ModelsDiagnosis, ProviderDiagnosis};

use super::page::Page;

/// The maximum number of models shown per provider.
const MAX_MODELS: usize = 8;

/// Shows the default model and the providers.
pub(super) fn show(models: &ModelsDiagnosis, page: &Page<'_>) -> io::Result<()> {
    page.heading("Models")?;
    match &models.default_model {
        Some(model) => page.row("default", &format!("{}: {}", model.name, model.source))?,
        None => page.row("default", "none: see the problems below")?,
    }
    for provider in &models.providers {
        show_provider(provider, page)?;
    }
    if models.providers.is_empty() {
        page.row("providers", "none")?;
    }
    Ok(())
}

fn show_provider(provider: &ProviderDiagnosis, page: &Page<'_>) -> io::Result<()> {
    let at = provider.base_url.as_deref().unwrap_or("unknown URL");
    let key = match (provider.key, &provider.key_variable) {
        ("missing", Some(variable)) => format!("key missing: set {variable}"),
        ("set", Some(variable)) => format!("with the key in {variable}"),
        ("set", None) => "with a key".to_owned(),
        _ => "without a key".to_owned(),
    };
    let default = if provider.is_default { ", the default" } else { "" };
    page.row(&provider.name, &format!("{at}, {key}{default}"))?;
    let api = provider.api.map(|api| format!("; API: {api}")).unwrap_or_default();
    page.row("", &format!("source: {}{api}", provider.source))?;
    let answer = match &provider.error {
        Some(error) => error.message.clone(),
        None => {
            let shown: Vec<_> =
                provider.models.iter().take(MAX_MODELS).map(String::as_str).collect();
            let more = if provider.models.len() > MAX_MODELS { ", …" } else { "" };
            format!("responds; models: {}{more}", shown.join(", "))
        }
    };
    page.row("", &answer)?;
    for capability in &provider.capabilities {
        page.answer(capability.supported, capability.name, capability.meaning)?;
    }
    Ok(())
}
