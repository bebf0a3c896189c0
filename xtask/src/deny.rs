//! `deny`: checks licences, banned packages and sources of every package against `deny.toml`.
//!
//! The file has the format of cargo-deny. This command implements the small part that needs no network and no long
//! build. An unsupported setting is an error, so that none is silently ignored.

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

/// Returns every violation. Packages in several versions are only printed if `deny.toml` says so.
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
            complaints
                .extend(repeated.iter().map(|package| format!("{package}: in several versions")));
        }
    }
    Ok(complaints)
}

fn check_licenses(config: &Config, packages: &[Package]) -> Vec<String> {
    packages.iter().filter_map(|package| check_license(config, package)).collect()
}

fn check_license(config: &Config, package: &Package) -> Option<String> {
    let Package { name, version, license, .. } = package;
    let clarified =
        config.licenses.clarify.iter().find(|clarification| clarification.package == *name);
    let license = match (license, clarified) {
        (Some(license), _) => license,
        (None, Some(clarification))
            if files::are_unchanged(package, &clarification.license_files) =>
        {
            &clarification.expression
        }
        (None, Some(_)) => {
            return Some(format!(
                "{name} {version}: its licence files have changed since their review; see `clarify`"
            ));
        }
        (None, None) => return Some(format!("{name} {version}: has no licence")),
    };
    let exceptions =
        config.licenses.exceptions.iter().filter(|exception| exception.package == *name);
    let allowed: BTreeSet<&str> = config
        .licenses
        .allow
        .iter()
        .chain(exceptions.flat_map(|exception| &exception.allow))
        .map(String::as_str)
        .collect();
    match spdx::is_satisfied(license, &allowed) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name} {version}: its licence is not allowed: {license}")),
        Err(error) => {
            Some(format!("{name} {version}: cannot parse its licence `{license}`: {error}"))
        }
    }
}

fn check_bans(config: &Config, packages: &[Locked]) -> Vec<String> {
    let mut complaints = Vec::new();
    for ban in &config.bans.deny {
        for package in packages.iter().filter(|package| package.name == ban.package) {
            complaints.push(format!(
                "{} {}: banned: {}; see `cargo tree --target all -i {0}`",
                package.name, package.version, ban.reason
            ));
        }
    }
    complaints
}

/// Returns the requirements of our own packages that accept any version.
fn check_wildcards(config: &Config, packages: &[Package]) -> Vec<String> {
    if config.bans.wildcards != Level::Deny {
        return Vec::new();
    }
    let ours = packages.iter().filter(|package| package.source.is_none());
    ours.flat_map(|package| {
        let wild = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_none() && dependency.req == "*");
        wild.map(|dependency| {
            format!("{}: accepts any version of {}; require one", package.name, dependency.name)
        })
    })
    .collect()
}

fn check_sources(config: &Config, packages: &[Locked]) -> Vec<String> {
    let refused = packages
        .iter()
        .filter_map(|package| Some((package, package.source.as_deref()?)))
        .filter(|(_, source)| {
            if source.starts_with("git+") {
                config.sources.unknown_git == Level::Deny
            } else {
                *source != DEFAULT_REGISTRY && config.sources.unknown_registry == Level::Deny
            }
        });
    refused
        .map(|(package, source)| {
            format!("{} {}: comes from {source}", package.name, package.version)
        })
        .collect()
}

fn repeated(packages: &[Locked]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions.iter().map(|(name, versions)| format!("{name} {}", versions.join(" "))).collect()
}
