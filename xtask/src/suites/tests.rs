//! Listings with a missing scenario, a missing suite, and with nothing missing.

use super::{Listing, SUITES, check, scenarios};

const PACKAGES: [&str; 3] = ["helix-agents-core", "helix-agents-store-a", "helix-agents-store-b"];

const RUNTIMES: [&str; 2] = ["helix-agents-runtime-a", "helix-agents-runtime-b"];

/// Returns a listing with one binary per line of `package kind test…`.
fn listing(lines: &[&str]) -> Listing {
    let binaries = lines.iter().enumerate().map(|(index, line)| {
        let mut words = line.split(' ');
        let (package, kind) = (words.next().unwrap(), words.next().unwrap());
        let tests: serde_json::Map<_, _> =
            words.map(|test| (test.to_owned(), serde_json::json!({ "ignored": false }))).collect();
        let binary =
            serde_json::json!({ "package-name": package, "kind": kind, "testcases": tests });
        (index.to_string(), binary)
    });
    let binaries: serde_json::Map<_, _> = binaries.collect();
    serde_json::from_value(serde_json::json!({ "test-count": 1, "rust-suites": binaries })).unwrap()
}

fn complaints(lines: &[&str]) -> Vec<String> {
    let listing = listing(lines);
    let suite = SUITES.first().unwrap();
    check(suite, &scenarios(suite, &PACKAGES, &listing))
}

#[test]
fn complete_backends_have_no_complaints() {
    assert_eq!(
        complaints(&[
            "helix-agents-core lib conformance::unrelated",
            "helix-agents-store-a test conformance::one conformance::two own",
            "helix-agents-store-b test conformance::one conformance::two",
        ]),
        [] as [&str; 0]
    );
}

#[test]
fn a_missing_scenario_is_reported() {
    assert_eq!(
        complaints(&[
            "helix-agents-store-a test conformance::one conformance::two",
            "helix-agents-store-b test conformance::one",
        ]),
        ["helix-agents-store-b: does not run conformance::two"]
    );
}

#[test]
fn the_complaint_about_a_missing_suite_says_how_to_add_it() {
    let complaints = complaints(&[
        "helix-agents-store-a test conformance::one",
        "helix-agents-store-b lib conformance::one",
    ]);
    assert_eq!(
        complaints,
        [
            "helix-agents-store-b: runs no conformance:: scenario; expand `store_suite!` in `mod conformance` of its \
         tests/it/main.rs"
        ]
    );
}

#[test]
fn a_suite_does_not_apply_to_excepted_packages() {
    let listing = listing(&["helix-agents-store-a test durable::one"]);
    let suite = SUITES.iter().find(|suite| suite.module == "durable::").unwrap();
    let packages = ["helix-agents-store-a", "helix-agents-store-memory"];
    assert_eq!(check(suite, &scenarios(suite, &packages, &listing)), [] as [&str; 0]);
    let packages = ["helix-agents-store-a", "helix-agents-store-b"];
    assert_eq!(check(suite, &scenarios(suite, &packages, &listing)).len(), 1);
}

#[test]
fn a_runtime_runs_all_scenarios_on_each_of_its_stores() {
    let places = |stores: &[&str], names: &[&str]| -> String {
        let tests = stores.iter().flat_map(|store| names.iter().map(move |name| (store, name)));
        tests.map(|(store, name)| format!(" parity::{store}::{name}")).collect()
    };
    let suite = SUITES.iter().find(|suite| !suite.places.is_empty()).unwrap();
    let complaints = |b: &str| {
        let all = places(&["memory", "postgres", "redis", "sqlite"], &["one", "two"]);
        let a = format!("helix-agents-runtime-a test{all}");
        let listing = listing(&[&a, &format!("helix-agents-runtime-b test{b}")]);
        check(suite, &scenarios(suite, &RUNTIMES, &listing))
    };
    let complete = places(suite.places, &["one", "two"]);
    assert_eq!(complaints(&complete), [] as [&str; 0], "not every runtime is tested in memory");
    let found =
        complaints(&(places(suite.places, &["one"]) + " parity::sqlite::two parity::own::two"));
    let missing = |test| format!("helix-agents-runtime-b: does not run parity::{test}");
    assert_eq!(found, ["own::one", "postgres::two", "redis::two"].map(missing));
}
