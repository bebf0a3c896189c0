//! One violation of each rule of the table.

use std::path::PathBuf;

use super::{Below, check_below, check_direct, features, layer_of, package_count, parse};
use crate::workspace::{Dependency, Package};

fn package(name: &str, dependencies: Vec<Dependency>) -> Package {
    Package {
        name: name.to_owned(),
        version: "0.1.0".to_owned(),
        source: None,
        license: None,
        manifest_path: PathBuf::new(),
        dependencies,
    }
}

fn dependency(name: &str, kind: Option<&str>) -> Dependency {
    Dependency {
        name: name.to_owned(),
        req: "*".to_owned(),
        kind: kind.map(str::to_owned),
        path: Some(PathBuf::new()),
    }
}

fn direct(name: &str, dependencies: Vec<Dependency>) -> Vec<String> {
    check_direct(layer_of(name).unwrap(), &package(name, dependencies))
}

fn indirect(name: &str, tree: &str) -> Vec<String> {
    let below: Vec<Below> = tree.lines().filter_map(parse).collect();
    check_below(layer_of(name).unwrap(), name, &below)
}

#[test]
fn a_crate_without_a_row_is_unknown() {
    assert!(layer_of("helix-agents-surprise").is_none());
    assert!(layer_of("helix-agents-store-anything").is_some());
}

#[test]
fn a_store_may_use_core_and_no_other_store() {
    let name = "helix-agents-store-sqlite";
    assert_eq!(direct(name, vec![dependency("helix-agents-core", None)]), [] as [&str; 0]);
    assert_eq!(
        direct(name, vec![dependency("helix-agents-store-memory", None)]),
        ["helix-agents-store-sqlite: may not depend on helix-agents-store-memory"]
    );
}

#[test]
fn a_suite_may_use_core_and_no_store() {
    let name = "helix-agents-conformance";
    assert_eq!(direct(name, vec![dependency("helix-agents-core", None)]), [] as [&str; 0]);
    assert_eq!(
        direct(name, vec![dependency("helix-agents-testkit", None)]),
        ["helix-agents-conformance: may not depend on helix-agents-testkit"]
    );
    assert_eq!(indirect(name, "helix-agents-store-memory v0.1.0 (x)|").len(), 1);
}

#[test]
fn dev_dependencies_do_not_count() {
    let testkit = dependency("helix-agents-testkit", Some("dev"));
    assert_eq!(direct("helix-agents-core", vec![testkit]), [] as [&str; 0]);
}

#[test]
fn the_facade_does_not_match_every_crate() {
    let wrong = direct("helix-agents-cli", vec![dependency("helix-agents-core", None)]);
    assert_eq!(wrong, ["helix-agents-cli: may not depend on helix-agents-core"]);
}

#[test]
fn a_banned_indirect_dependency_is_reported_once() {
    let wrong = indirect(
        "helix-agents-testkit",
        "helix-agents-testkit v0.1.0 (x)|\naxum-core v0.5.0|\naxum-core v0.5.0| (*)",
    );
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong.iter().all(|complaint| complaint.contains("must not depend on axum-core")));
}

#[test]
fn a_store_does_not_depend_on_itself() {
    let name = "helix-agents-store-memory";
    assert_eq!(indirect(name, "helix-agents-store-memory v0.1.0 (x)|"), [] as [&str; 0]);
    assert_eq!(indirect(name, "helix-agents-store-sqlite v0.1.0 (x)|").len(), 1);
}

#[test]
fn core_may_have_channels_but_no_executor() {
    let name = "helix-agents-core";
    assert_eq!(indirect(name, "tokio v1.54.0|default,sync"), [] as [&str; 0]);
    let wrong = indirect(name, "tokio v1.54.0|default,rt,sync (*)");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(
        wrong
            .iter()
            .all(|complaint| complaint.contains("must not enable the feature `rt` of tokio"))
    );
}

#[test]
fn few_features_include_no_client_of_a_server() {
    let below = |tree: &str| -> Vec<Below> { tree.lines().filter_map(parse).collect() };
    let quiet = below("helix-agents v0.1.0 (x)|\nlibsqlite3-sys v0.38.2|\ntokio v1.54.0|");
    assert_eq!(features::check(&[], &quiet), [] as [&str; 0]);

    let clients = below(
        "dbos v0.5.0|\nredis v1.8.0|\nsqlx-core v0.9.0|\nsqlx-postgres v0.9.0|\n\
         temporalio-sdk v1.1.1|\ntonic v0.14.9|\ntonic v0.14.9| (*)",
    );
    let wrong = features::check(&["--no-default-features"], &clients);
    assert_eq!(wrong.len(), 5, "{wrong:?}");
    assert_eq!(
        wrong.first().unwrap(),
        "helix-agents --no-default-features: must not depend on dbos, directly or indirectly; \
         see `cargo tree -p helix-agents --no-default-features -e normal -i dbos`"
    );
    let by_default = features::check(&[], &clients);
    assert!(
        by_default
            .iter()
            .all(|complaint| complaint.starts_with("helix-agents with default features: "))
    );
}

#[test]
fn a_line_of_cargo_tree_is_parsed_with_and_without_marks() {
    let expected = |features: &[&str]| {
        let features = features.iter().map(|&feature| feature.to_owned()).collect();
        Some(Below { name: "serde".to_owned(), features })
    };
    assert_eq!(parse("serde v1.0.0|default,std"), expected(&["default", "std"]));
    assert_eq!(parse("serde v1.0.0 (proc-macro)|default (*)"), expected(&["default"]));
    assert_eq!(parse("serde v1.0.0| (*)"), expected(&[]));
    assert_eq!(parse(""), None);
}

#[test]
fn packages_below_core_are_counted_once() {
    let tree = |packages: usize| -> Vec<Below> {
        let own = "helix-agents-core v0.1.0 (x)|".to_owned();
        let others = (0..packages).map(|number| format!("package-{number} v1.0.0|"));
        let lines: Vec<_> = std::iter::once(own).chain(others).collect();
        lines.iter().chain(&lines).filter_map(|line| parse(line)).collect()
    };
    assert_eq!(package_count::check(&tree(60)), None);
    assert!(
        package_count::check(&tree(61)).is_some_and(|complaint| complaint.contains("61 packages"))
    );
}
