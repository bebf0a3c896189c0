//! `layers`: the table of permitted dependencies between crates, and the layers within the core crate. A new crate is an
//! error until it has a row.
//!
//! Direct dependencies on our own crates come from `cargo metadata`. Indirect dependencies and their features come from
//! `cargo tree` of that crate alone, so that another crate's features cannot hide or add anything. Only normal
//! dependencies count: tests may use any crate. The dependencies of the library with few features and the number of
//! packages below the core crate are checked separately.

use anyhow::Result;

use crate::process;
use crate::workspace::{self, Package, name_matches};

mod core;
mod features;
mod package_count;

#[cfg(test)]
mod tests;

/// The permitted dependencies of the crates with one name. A trailing `*` in any name matches the rest of it.
struct Layer {
    name: &'static str,
    /// Our crates that its manifest may name.
    may_use: &'static [&'static str],
    /// Packages that must not be among its direct or indirect dependencies.
    never: &'static [&'static str],
    /// Features of dependencies that must be disabled.
    never_features: &'static [(&'static str, &'static str)],
}

impl Layer {
    const EMPTY: Self = Self { name: "", may_use: &[], never: &[], never_features: &[] };
}

/// The more specific name comes first.
#[rustfmt::skip]
const LAYERS: &[Layer] = &[
    Layer { name: "xtask", ..Layer::EMPTY },
    Layer { name: "helix-agents-macros", ..Layer::EMPTY },
    Layer {
        name: "helix-agents-core",
        never: &["sqlx*", "rusqlite", "redis*", "reqwest*", "hyper*", "axum*", "tonic*", "tracing-subscriber"],
        // Locks and channels need no executor; the feature `rt` is one.
        never_features: &[("tokio", "rt")],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-test",
        may_use: &["helix-agents-core"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "sqlx*", "rusqlite", "axum*", "reqwest*", "expect-test"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-conformance",
        may_use: &["helix-agents-core", "helix-agents-macros", "helix-agents-test"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "sqlx*", "rusqlite", "axum*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-testkit",
        may_use: &[
            "helix-agents-conformance",
            "helix-agents-core",
            "helix-agents-macros",
            "helix-agents-test",
        ],
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
        may_use: &["helix-agents-core", "helix-agents-sse"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "axum*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-protocols",
        may_use: &["helix-agents-core"],
        // Pure translators: nothing that performs I/O.
        never: &["helix-agents-store-*", "helix-agents-runtime*", "helix-agents-llm", "axum*", "reqwest*", "hyper*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-planner",
        may_use: &["helix-agents-core"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "helix-agents-llm", "axum*", "reqwest*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-tools",
        may_use: &["helix-agents-core"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "helix-agents-llm", "axum*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-agent-file",
        may_use: &["helix-agents-core", "helix-agents-planner", "helix-agents-tools"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "helix-agents-llm", "axum*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-server",
        may_use: &["helix-agents-core", "helix-agents-protocols", "helix-agents-runtime"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "helix-agents-llm", "reqwest*", "expect-test"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-sse",
        may_use: &["helix-agents-core"],
        never: &["axum*", "reqwest*", "hyper*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-telemetry",
        may_use: &["helix-agents-core"],
        // Telemetry reads the log only.
        never: &["helix-agents-store-*", "helix-agents-runtime*", "helix-agents-llm", "axum*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-client",
        may_use: &["helix-agents-core", "helix-agents-sse"],
        // A client needs no engine, no store and no server.
        never: &["helix-agents-store-*", "helix-agents-runtime*", "helix-agents-llm", "helix-agents-server", "axum*"],
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
        may_use: &[
            "helix-agents-agent-file",
            "helix-agents-client",
            "helix-agents-terminal",
            "helix-agents-core",
            "helix-agents-llm",
            "helix-agents-macros",
            "helix-agents-planner",
            "helix-agents-runtime",
            "helix-agents-runtime-*",
            "helix-agents-server",
            "helix-agents-store-*",
            "helix-agents-telemetry",
            "helix-agents-test",
            "helix-agents-tools",
        ],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-terminal",
        may_use: &["helix-agents-core", "helix-agents-planner", "helix-agents-tools"],
        never: &["helix-agents-store-*", "helix-agents-runtime-*", "helix-agents-llm", "axum*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-demo",
        may_use: &["helix-agents"],
        never: &["helix-agents-testkit", "helix-agents-store-*", "expect-test", "axum*", "reqwest*"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-cli",
        may_use: &["helix-agents", "helix-agents-demo"],
        // The binary contains no test support other than the scripted model of the demo.
        never: &["helix-agents-conformance", "helix-agents-testkit", "expect-test"],
        ..Layer::EMPTY
    },
    Layer { name: "helix-agents-tests-e2e", may_use: PROGRAM, ..Layer::EMPTY },
    Layer {
        name: "helix-agents-tests-macros",
        may_use: &["helix-agents-core", "helix-agents-macros"],
        // These packages take most of the time for compiling the rest.
        never: &["jsonschema", "tokio-macros"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-tests-providers",
        may_use: &["helix-agents-conformance", "helix-agents-core", "helix-agents-llm"],
        ..Layer::EMPTY
    },
    Layer {
        name: "helix-agents-tests-sim",
        may_use: &[
            "helix-agents-conformance",
            "helix-agents-core",
            "helix-agents-planner",
            "helix-agents-runtime",
            "helix-agents-runtime-local",
            "helix-agents-store-memory",
            "helix-agents-testkit",
        ],
        // A simulation uses no servers and no files.
        never: &["sqlx*", "rusqlite", "redis*", "reqwest*", "hyper*"],
        ..Layer::EMPTY
    },
    Layer { name: "helix-agents-benches",   may_use: PROGRAM, ..Layer::EMPTY },
    Layer { name: "helix-agents-examples", may_use: PROGRAM, ..Layer::EMPTY },
];

/// The crates that programs which use the library may depend on.
const PROGRAM: &[&str] = &["helix-agents", "helix-agents-test", "helix-agents-testkit"];

/// A direct or indirect dependency, with its enabled features.
#[derive(Debug, PartialEq, Eq)]
struct Below {
    name: String,
    features: Vec<String>,
}

/// Returns every violation of the table.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let members = workspace::members()?;
    let mut complaints = Vec::new();
    for package in &members {
        let Some(layer) = layer_of(&package.name) else {
            complaints.push(format!(
                "{}: has no row in xtask/src/layers.rs; add one with its permitted dependencies",
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
    complaints.extend(core::complaints()?);
    complaints.extend(package_count::complaint()?);
    Ok(complaints)
}

fn layer_of(package: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| name_matches(layer.name, package))
}

fn check_direct(layer: &Layer, package: &Package) -> Vec<String> {
    let ours = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind.is_none() && dependency.path.is_some());
    ours.filter(|dependency| {
        !layer.may_use.iter().any(|pattern| name_matches(pattern, &dependency.name))
    })
    .map(|dependency| format!("{}: may not depend on {}", package.name, dependency.name))
    .collect()
}

fn check_below(layer: &Layer, package: &str, below: &[Below]) -> Vec<String> {
    let mut complaints = Vec::new();
    for other in below.iter().filter(|other| other.name != package) {
        if layer.never.iter().any(|pattern| name_matches(pattern, &other.name)) {
            complaints.push(format!(
                "{package}: must not depend on {0}, directly or indirectly; see `cargo tree -p {package} -e normal -i {0}`",
                other.name
            ));
        }
        for (name, feature) in layer.never_features {
            if other.name == *name && other.features.iter().any(|enabled| enabled == feature) {
                complaints.push(format!(
                    "{package}: must not enable the feature `{feature}` of {name}; see `cargo tree -p {package} -e normal,features -i {name}`"
                ));
            }
        }
    }
    complaints.sort();
    complaints.dedup();
    complaints
}

/// Returns all direct and indirect dependencies of one of our packages, built alone with the features of these
/// arguments.
fn below(package: &str, features: &[&str]) -> Result<Vec<Below>> {
    let tree = ["tree", "--quiet", "--edges", "normal", "--prefix", "none", "--format", "{p}|{f}"];
    let mut command = process::cargo(tree);
    let tree = process::capture(command.args(["--package", package]).args(features))?;
    Ok(tree.lines().filter_map(parse).collect())
}

/// Parses a line such as `tokio v1.54.0|default,sync (*)`.
fn parse(line: &str) -> Option<Below> {
    let (package, features) = line.split_once('|')?;
    let name = package.split_whitespace().next()?;
    let features = features.split_whitespace().next().unwrap_or_default();
    Some(Below {
        name: name.to_owned(),
        features: features
            .split(',')
            .filter(|feature| !feature.is_empty() && *feature != "(*)")
            .map(str::to_owned)
            .collect(),
    })
}
