//! Selections of tests, and reports in nextest's format.

use super::flaky;
use super::tier::{Selection, Tier};

#[test]
fn a_test_that_passed_only_when_retried_is_flaky() {
    let xml = r#"<testsuites><testsuite name="a::it">
        <testcase name="good" classname="a::it" time="0.1"></testcase>
        <testcase name="shaky" classname="a::it" time="0.1"><flakyFailure timestamp="t" time="0.2">why</flakyFailure></testcase>
        <testcase name="bad" classname="a::it" time="0.1"><failure>why</failure><rerunFailure>why</rerunFailure></testcase>
        </testsuite></testsuites>"#;
    assert_eq!(flaky(xml).unwrap(), ["a::it::shaky"]);
}

#[test]
fn without_a_report_no_test_is_flaky() {
    assert_eq!(flaky("").unwrap(), [] as [&str; 0]);
}

#[test]
fn arguments_select_a_tier_or_packages() {
    let quick = Selection::read(&["--no-capture", "name"]);
    assert_eq!((quick.tier, &*quick.args), (Tier::Quick, &["--no-capture", "name"][..]));
    assert!(quick.packages.contains(&"helix-agents-core") && !quick.needs_servers());
    let gate = Selection::read(&["--gate"]);
    assert_eq!((gate.tier, &*gate.packages), (Tier::Gate, &["--workspace", "--all-features"][..]));
    assert!(gate.needs_servers() && gate.has_whole_workspace() && !quick.has_whole_workspace());
    let package = |name| Selection::read(&["-p", name, "--gate", "name"]);
    let core = package("helix-agents-core");
    assert_eq!(core.packages, ["--package", "helix-agents-core", "--all-features"]);
    assert_eq!((core.tier, &*core.args, core.needs_servers()), (Tier::Gate, &["name"][..], false));
    assert!(package("helix-agents-store-redis").needs_servers());
    assert!(!package("helix-agents-runtime").needs_servers());
    assert_eq!(Selection::read(&["-p", "helix-agents-core"]).tier, Tier::Deep);
}
