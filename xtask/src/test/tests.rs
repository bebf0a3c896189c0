//! Reports in nextest's format.

use super::flaky;

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
