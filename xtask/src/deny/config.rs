//! The supported part of `deny.toml`.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Config {
    /// The part of the dependency graph that cargo-deny checks. This command always checks all of it.
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
    /// The allowed SPDX identifiers, including their `WITH` part if there is one.
    pub allow: Vec<String>,
    #[serde(default)]
    pub exceptions: Vec<Exception>,
    #[serde(default)]
    pub clarify: Vec<Clarification>,
}

/// The licence of a package whose manifest has none but which contains a licence file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Clarification {
    #[serde(rename = "crate")]
    pub package: String,
    pub expression: String,
    pub license_files: Vec<LicenseFile>,
}

/// A licence file and the checksum that it had when it was reviewed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LicenseFile {
    /// The path within the package.
    pub path: String,
    /// The CRC-32 of its contents.
    pub hash: u32,
}

/// Licences that are allowed for one package only.
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
    /// Whether path dependencies need no version. cargo-deny requires this setting; here it is always on.
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
    /// The level for registries other than cargo's own.
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
