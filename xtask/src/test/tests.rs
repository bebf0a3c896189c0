//! Of reports as nextest writes them.

use super::flaky;

#[test]
fn what_passed_only_the_second_time_is_told_of() {
    let xml = r#"<testsuites><testsuite name="a::it">
        <testcase name="good" classname="a::it" time="0.1"></testcase>
        <testcase name="shaky" classname="a::it" time="0.1"><flakyFailure timestamp="t" time="0.2">why</flakyFailure></testcase>
        <testcase name="bad" classname="a::it" time="0.1"><failure>why</failure><rerunFailure>why</rerunFailure></testcase>
        </testsuite></testsuites>"#;
    assert_eq!(flaky(xml).unwrap(), ["a::it::shaky"]);
}

#[test]
fn without_a_report_nothing_is_told() {
    assert_eq!(flaky("").unwrap(), [] as [&str; 0]);
}
