//! `deny`: licences, bans and sources of every package, by `deny.toml`.
//!
//! The file is in the form that cargo-deny reads. This is its small part that needs no network and no long build;
//! a setting that is not understood here is an error, so that none is silently ignored.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::workspace::{self, Package};
use config::{Config, Level};

mod config;
mod files;
mod spdx;

#[cfg(test)]
mod tests;

/// The registry that cargo uses when a manifest names none.
const DEFAULT_REGISTRY: &str =
    concat!("registry+https://github.com/rust-lang/", "crates", ".io-index");

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    source: Option<String>,
}

/// Every breach; packages in several versions are only printed if `deny.toml` says so.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let read =
        |path| std::fs::read_to_string(path).with_context(|| format!("could not read {path}"));
    let config: Config = toml::from_str(&read("deny.toml")?).context("could not read deny.toml")?;
    let packages = workspace::packages()?; // writes Cargo.lock if there is none
    let lock: Lock = toml::from_str(&read("Cargo.lock")?).context("could not read Cargo.lock")?;

    let mut complaints = check_licenses(&config, &packages);
    complaints.extend(check_bans(&config, &lock.package));
    complaints.extend(check_wildcards(&config, &packages));
    complaints.extend(check_sources(&config, &lock.package));
    let repeated = repeated(&lock.package);
    match config.bans.multiple_versions {
        Level::Allow => {}
        Level::Warn if repeated.is_empty() => {}
        Level::Warn => println!("in several versions: {}", repeated.join(", ")),
        Level::Deny => {
            complaints.extend(repeated.iter().map(|it| format!("{it}: in several versions")));
        }
    }
    Ok(complaints)
}

fn check_licenses(config: &Config, packages: &[Package]) -> Vec<String> {
    packages.iter().filter_map(|package| check_license(config, package)).collect()
}

fn check_license(config: &Config, package: &Package) -> Option<String> {
    let Package { name, version, license, .. } = package;
    let clarified = config.licenses.clarify.iter().find(|it| it.package == *name);
    let license = match (license, clarified) {
        (Some(license), _) => license,
        (None, Some(it)) if files::are_unchanged(package, &it.license_files) => &it.expression,
        (None, Some(_)) => {
            return Some(format!(
                "{name} {version}: its licence is not what somebody read; see `clarify`"
            ));
        }
        (None, None) => return Some(format!("{name} {version}: states no licence")),
    };
    let exceptions = config.licenses.exceptions.iter().filter(|it| it.package == *name);
    let allowed: BTreeSet<&str> = config
        .licenses
        .allow
        .iter()
        .chain(exceptions.flat_map(|it| &it.allow))
        .map(String::as_str)
        .collect();
    match spdx::is_satisfied(license, &allowed) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name} {version}: its licence is not allowed: {license}")),
        Err(error) => {
            Some(format!("{name} {version}: cannot read its licence `{license}`: {error}"))
        }
    }
}

fn check_bans(config: &Config, packages: &[Locked]) -> Vec<String> {
    let mut complaints = Vec::new();
    for ban in &config.bans.deny {
        for package in packages.iter().filter(|it| it.name == ban.package) {
            complaints.push(format!(
                "{} {}: banned: {}; see `cargo tree --target all -i {0}`",
                package.name, package.version, ban.reason
            ));
        }
    }
    complaints
}

/// Requirements of our own packages that accept any version.
fn check_wildcards(config: &Config, packages: &[Package]) -> Vec<String> {
    if config.bans.wildcards != Level::Deny {
        return Vec::new();
    }
    let ours = packages.iter().filter(|it| it.source.is_none());
    ours.flat_map(|package| {
        let wild = package.dependencies.iter().filter(|it| it.path.is_none() && it.req == "*");
        wild.map(|it| format!("{}: takes any version of {}; state one", package.name, it.name))
    })
    .collect()
}

fn check_sources(config: &Config, packages: &[Locked]) -> Vec<String> {
    let refused =
        packages.iter().filter_map(|it| Some((it, it.source.as_deref()?))).filter(|(_, source)| {
            if source.starts_with("git+") {
                config.sources.unknown_git == Level::Deny
            } else {
                *source != DEFAULT_REGISTRY && config.sources.unknown_registry == Level::Deny
            }
        });
    refused.map(|(it, source)| format!("{} {}: comes from {source}", it.name, it.version)).collect()
}

fn repeated(packages: &[Locked]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    versions.retain(|_, it| it.len() > 1);
    versions.iter().map(|(name, versions)| format!("{name} {}", versions.join(" "))).collect()
}
