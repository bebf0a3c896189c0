//! `deny.toml`, as far as it is understood here.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Config {
    /// What cargo-deny looks at; here it is always everything.
    #[serde(default, rename = "graph")]
    _graph: Graph,
    pub licenses: Licenses,
    pub bans: Bans,
    pub sources: Sources,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Graph {
    #[serde(rename = "all-features")]
    _all_features: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Licenses {
    /// SPDX identifiers, with their `WITH` part where that is meant.
    pub allow: Vec<String>,
    #[serde(default)]
    pub exceptions: Vec<Exception>,
    #[serde(default)]
    pub clarify: Vec<Clarification>,
}

/// The licence of a package that states none but has a file with it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Clarification {
    #[serde(rename = "crate")]
    pub package: String,
    pub expression: String,
    pub license_files: Vec<LicenseFile>,
}

/// A file as it was when a person read it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LicenseFile {
    /// Within the package.
    pub path: String,
    /// The CRC-32 of what it says.
    pub hash: u32,
}

/// Licences that are fine for one package only.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exception {
    #[serde(rename = "crate")]
    pub package: String,
    pub allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Bans {
    pub multiple_versions: Level,
    pub wildcards: Level,
    /// A path has no version to state; asked for by cargo-deny, always so here.
    #[serde(default, rename = "allow-wildcard-paths")]
    _allow_wildcard_paths: bool,
    pub deny: Vec<Ban>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ban {
    #[serde(rename = "crate")]
    pub package: String,
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Sources {
    /// For registries other than cargo's own.
    pub unknown_registry: Level,
    pub unknown_git: Level,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Allow,
    Warn,
    Deny,
}
