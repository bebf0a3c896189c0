//! The options and commands of this program that help with a remedy.

use helix_agents::finding::Finding;

/// Adds the options and commands of this program to the remedy of a finding about models.
pub(super) fn of_models(finding: Finding) -> Finding {
    match &*finding.code {
        "no_model" => with(finding, "; without a model, `helix demo` runs with a built-in script"),
        "model_not_listed" => with(finding, " with --model or HELIX_MODEL"),
        _ => finding,
    }
}

/// Adds the options and commands of this program to the remedy of a finding about a store.
pub(super) fn of_store(finding: Finding) -> Finding {
    match &*finding.code {
        "session_stopped" => with(finding, ": helix sessions list, helix resume SESSION"),
        "engine_on_one_machine" => with(finding, ": helix sessions export, helix sessions import"),
        "server_not_durable" | "server_settings" => finding,
        _ => with(finding, " (--db or HELIX_DB names the database)"),
    }
}

fn with(mut finding: Finding, hint: &str) -> Finding {
    finding.remedy.to_mut().push_str(hint);
    finding
}
