//! `suites`: checks that every backend of a kind runs every scenario of that kind.
//!
//! It lists the compiled tests and does not read the source, so it notices a suite that is commented out or configured
//! away. There is no list of scenarios: it is the union over all backends.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::workspace;
use crate::{process, tools};

#[cfg(test)]
mod tests;

/// A suite: the packages that run it, and the test module that they expand it in.
struct Suite {
    packages: &'static str,
    module: &'static str,
    expanded_by: &'static str,
    /// The submodules, if the suite is expanded once for each of several stores. There may be others.
    places: &'static [&'static str],
    /// Packages of this kind to which the suite does not apply.
    except: &'static [&'static str],
}

#[rustfmt::skip]
const SUITES: &[Suite] = &[
    Suite { packages: "helix-agents-store-",   module: "conformance::", expanded_by: "store_suite!",   places: &[],    except: &[] },
    Suite { packages: "helix-agents-store-",   module: "stream::",      expanded_by: "stream_suite!",  places: &[],    except: &[] },
    Suite { packages: "helix-agents-store-",   module: "backend::",     expanded_by: "backend_suite!", places: &[],    except: &[] },
    Suite { packages: "helix-agents-store-",   module: "durable::",     expanded_by: "durable_suite!", places: &[],    except: VOLATILE },
    Suite { packages: "helix-agents-runtime-", module: "parity::",      expanded_by: "runtime_suite!", places: STORES, except: &[] },
];

/// The stores that keep nothing when their process ends.
const VOLATILE: &[&str] = &["helix-agents-store-memory"];

/// The stores that every runtime is tested with.
const STORES: &[&str] = &["postgres", "redis", "sqlite"];

/// Returns the package whose suite a package expands. The end-to-end tests expand that of the local runtime on the stores
/// with a server, so that its own tests need none.
fn home(package: &str) -> &str {
    match package {
        "helix-agents-tests-e2e" => "helix-agents-runtime-local",
        other => other,
    }
}

/// The output of `cargo nextest list --message-format json`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Listing {
    rust_suites: BTreeMap<String, Binary>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Binary {
    package_name: String,
    /// `test` for the binaries of `tests/`.
    kind: String,
    testcases: BTreeMap<String, serde::de::IgnoredAny>,
}

/// Returns `true` if a test, named with its binary, is an expansion of `suite::scenario` in some backend.
pub(crate) fn is_run_of(test: &str, scenario: &str) -> bool {
    let Some((suite, name)) = scenario.split_once("::") else { return false };
    let is_of = |candidate: &&Suite| candidate.expanded_by.trim_end_matches('!') == suite;
    SUITES.iter().filter(is_of).any(|suite| {
        let path = test.split_once("::it::");
        path.filter(|(package, _)| home(package).starts_with(suite.packages))
            .and_then(|(_, path)| path.strip_prefix(suite.module))
            .is_some_and(|path| path == name || path.ends_with(&format!("::{name}")))
    })
}

/// Scenario names by package.
type Scenarios<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns a complaint for every scenario that a backend does not run.
pub(crate) fn complaints() -> Result<Vec<String>> {
    tools::NEXTEST.ensure()?;
    let members = workspace::members()?;
    let packages: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let json = process::capture(&mut process::cargo([
        "nextest",
        "list",
        "--workspace",
        "--all-features",
        "--message-format",
        "json",
    ]))?;
    let listing: Listing =
        serde_json::from_str(&json).context("could not parse the list of tests")?;
    let mut complaints = Vec::new();
    for suite in SUITES {
        let scenarios = scenarios(suite, &packages, &listing);
        for (package, names) in &scenarios {
            println!("{package}: {} of {}", names.len(), suite.module);
        }
        complaints.extend(check(suite, &scenarios));
    }
    Ok(complaints)
}

/// Returns the scenarios of a suite for each package of its kind. A package without any has an empty set.
fn scenarios<'a>(suite: &Suite, packages: &[&'a str], listing: &'a Listing) -> Scenarios<'a> {
    let of_kind = packages
        .iter()
        .filter(|package| package.starts_with(suite.packages) && !suite.except.contains(package));
    let mut scenarios: Scenarios<'_> = of_kind.map(|package| (*package, BTreeSet::new())).collect();
    for binary in listing.rust_suites.values().filter(|binary| binary.kind == "test") {
        if let Some(names) = scenarios.get_mut(home(&binary.package_name)) {
            names
                .extend(binary.testcases.keys().filter_map(|test| test.strip_prefix(suite.module)));
        }
    }
    scenarios
}

fn check(suite: &Suite, scenarios: &Scenarios<'_>) -> Vec<String> {
    let all: BTreeSet<&str> =
        scenarios.values().flatten().map(|test| place_and_name(test).1).collect();
    let mut complaints = Vec::new();
    for (package, names) in scenarios {
        if names.is_empty() {
            complaints.push(format!(
                "{package}: runs no {0} scenario; expand `{1}` in `mod {2}` of its tests/it/main.rs",
                suite.module,
                suite.expanded_by,
                suite.module.trim_end_matches(':'),
            ));
            continue;
        }
        let found = names.iter().map(|test| place_and_name(test).0);
        let places: BTreeSet<&str> = suite.places.iter().copied().chain(found).collect();
        for (place, name) in
            places.iter().flat_map(|place| all.iter().map(move |name| (place, name)))
        {
            let name =
                if place.is_empty() { (*name).to_owned() } else { format!("{place}::{name}") };
            if !names.contains(name.as_str()) {
                complaints.push(format!("{package}: does not run {}{name}", suite.module));
            }
        }
    }
    complaints
}

/// Returns the submodule in which a scenario was expanded, and the scenario's name.
fn place_and_name(test: &str) -> (&str, &str) {
    test.rsplit_once("::").unwrap_or(("", test))
}
