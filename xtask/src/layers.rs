//! `layers`: who may depend on whom, as a table. A new crate is an error until it has a row.
//!
//! Direct dependencies on our own crates come from `cargo metadata`; what lies further below, and with which features,
//! from `cargo tree` of that crate alone, so that another crate's features cannot hide or cause anything. Only normal
//! dependencies count: a test may use what it likes. What the library has below it with few features is beside the table.

use anyhow::Result;

use crate::process;
use crate::workspace::{self, Package, name_matches};

mod features;

#[cfg(test)]
mod tests;

/// What the crates of one name may have below them. A trailing `*` in any name stands for the rest of it.
struct Layer {
    name: &'static str,
    /// Our crates it may name in its manifest.
    may_use: &'static [&'static str],
    /// Packages that must not be anywhere below it.
    never: &'static [&'static str],
    /// Features of packages below it that must stay off.
    never_features: &'static [(&'static str, &'static str)],
}

impl Layer {
    const EMPTY: Self = Self { name: "", may_use: &[], never: &[], never_features: &[] };
}

/// The more special name comes first.
#[rustfmt::skip]
const LAYERS: &[Layer] = &[
    Layer { name: "xtask", ..Layer::EMPTY },
    Layer { name: "helix-agents-macros", ..Layer::EMPTY },
    Layer {
        name: "helix-agents-core",
        never: &["sqlx*", "rusqlite", "redis*", "reqwest*", "hyper*", "axum*", "tonic*", "tracing-subscriber"],
        // Locks and channels need no executor; `rt` is one.
        never_features: &[("tokio", "rt")],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-testkit",
        may_use: &["helix-agents-core", "helix-agents-macros"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "sqlx*", "rusqlite", "axum*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-store-*",
        may_use: &["helix-agents-core"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "helix-agents-llm", "axum*", "reqwest*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-llm",
        may_use: &["helix-agents-core"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "axum*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-planner",
        may_use: &["helix-agents-core"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "helix-agents-llm", "axum*", "reqwest*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-runtime",
        may_use: &["helix-agents-core"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "helix-agents-llm", "axum*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-runtime-*",
        may_use: &["helix-agents-core", "helix-agents-runtime"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "helix-agents-llm", "axum*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents",
        may_use: &["helix-agents-core", "helix-agents-macros", "helix-agents-llm", "helix-agents-planner", "helix-agents-store-*", "helix-agents-runtime-*"],
        ..Layer::EMPTY
    },
    Layer { name: "helix-agents-cli",       may_use: PROGRAM, ..Layer::EMPTY },
    Layer { name: "helix-agents-tests-e2e", may_use: PROGRAM, ..Layer::EMPTY },
    Layer {
        name: "helix-agents-tests-sim",
        may_use: &[
            "helix-agents-core",
            "helix-agents-planner",
            "helix-agents-runtime",
            "helix-agents-runtime-local",
            "helix-agents-store-memory",
            "helix-agents-testkit",
        ],
        // A simulation has no servers, and no files.
        never: &["sqlx*", "rusqlite", "redis*", "reqwest*", "hyper*"],
        ..Layer::EMPTY
    },
    Layer { name: "helix-agents-benches",   may_use: PROGRAM, ..Layer::EMPTY },
    Layer { name: "helix-agents-example-*", may_use: PROGRAM, ..Layer::EMPTY },
];

/// What a program made of the library may use.
const PROGRAM: &[&str] = &["helix-agents", "helix-agents-testkit"];

/// A package below another one, with the features it has there.
#[derive(Debug, PartialEq, Eq)]
struct Below {
    name: String,
    features: Vec<String>,
}

/// Every breach of the table.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let members = workspace::members()?;
    let mut complaints = Vec::new();
    for package in &members {
        let Some(layer) = layer_of(&package.name) else {
            complaints.push(format!(
                "{}: has no row in xtask/src/layers.rs; add one that says what it may use",
                package.name
            ));
            continue;
        };
        complaints.extend(check_direct(layer, package));
        if !layer.never.is_empty() || !layer.never_features.is_empty() {
            complaints.extend(check_below(
                layer,
                &package.name,
                &below(&package.name, &["--all-features"])?,
            ));
        }
    }
    complaints.extend(features::complaints()?);
    Ok(complaints)
}

fn layer_of(package: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| name_matches(layer.name, package))
}

fn check_direct(layer: &Layer, package: &Package) -> Vec<String> {
    let ours = package.dependencies.iter().filter(|it| it.kind.is_none() && it.path.is_some());
    ours.filter(|it| !layer.may_use.iter().any(|pattern| name_matches(pattern, &it.name)))
        .map(|it| format!("{}: may not depend on {}", package.name, it.name))
        .collect()
}

fn check_below(layer: &Layer, package: &str, below: &[Below]) -> Vec<String> {
    let mut complaints = Vec::new();
    for other in below.iter().filter(|it| it.name != package) {
        if layer.never.iter().any(|pattern| name_matches(pattern, &other.name)) {
            complaints.push(format!(
                "{package}: must not have {0} below it; see `cargo tree -p {package} -e normal -i {0}`",
                other.name
            ));
        }
        for (name, feature) in layer.never_features {
            if other.name == *name && other.features.iter().any(|it| it == feature) {
                complaints.push(format!(
                    "{package}: must not turn on the feature `{feature}` of {name}; see `cargo tree -p {package} -e normal,features -i {name}`"
                ));
            }
        }
    }
    complaints.sort();
    complaints.dedup();
    complaints
}

/// All packages below one of ours, built alone with the features that these arguments turn on.
fn below(package: &str, features: &[&str]) -> Result<Vec<Below>> {
    let tree = ["tree", "--quiet", "--edges", "normal", "--prefix", "none", "--format", "{p}|{f}"];
    let mut command = process::cargo(tree);
    let tree = process::capture(command.args(["--package", package]).args(features))?;
    Ok(tree.lines().filter_map(parse).collect())
}

/// Reads `tokio v1.54.0|default,sync (*)`.
fn parse(line: &str) -> Option<Below> {
    let (package, features) = line.split_once('|')?;
    let name = package.split_whitespace().next()?;
    let features = features.split_whitespace().next().unwrap_or_default();
    Some(Below {
        name: name.to_owned(),
        features: features
            .split(',')
            .filter(|it| !it.is_empty() && *it != "(*)")
            .map(str::to_owned)
            .collect(),
    })
}
