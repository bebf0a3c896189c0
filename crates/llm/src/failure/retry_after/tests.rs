//! Every format of a wait that providers use.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::{of_body, of_headers};

#[track_caller]
fn check_headers(headers: &[(&'static str, &'static str)], expected: Option<u64>) {
    let pairs = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let map: HeaderMap = pairs.collect();
    assert_eq!(of_headers(&map), expected.map(Duration::from_millis));
}

#[track_caller]
fn check_body(body: &str, expected: Option<u64>) {
    assert_eq!(of_body(body.as_bytes()), expected.map(Duration::from_millis));
}

#[test]
fn milliseconds_win_over_seconds() {
    check_headers(&[("retry-after-ms", "250"), ("retry-after", "9")], Some(250));
    check_headers(&[("retry-after-ms", "12.0")], Some(12));
}

#[test]
fn seconds_may_have_a_fraction() {
    check_headers(&[("retry-after", "2")], Some(2000));
    check_headers(&[("retry-after", " 0.5 ")], Some(500));
    check_headers(&[("retry-after", "0")], Some(0));
}

#[test]
fn a_date_counts_from_the_providers_own_clock() {
    let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    check_headers(&[now, ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], Some(30_000));
    check_headers(&[now, ("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")], Some(0));
    check_headers(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], None);
}

#[test]
fn invalid_waits_are_ignored() {
    check_headers(&[("retry-after", "soon")], None);
    check_headers(&[("retry-after", "-3")], None);
    check_headers(&[("retry-after", "inf")], None);
    check_headers(&[("retry-after", "NaN")], None);
    check_headers(&[], None);
}

#[test]
fn bodies_state_a_wait_in_words_or_in_a_field() {
    check_body("Rate limit reached. Please try again in 1.5s. Visit …", Some(1500));
    check_body("Please try again in 20ms.", Some(20));
    check_body("please try again in 6m0s", Some(360_000));
    check_body("Please retry after 2 seconds.", Some(2000));
    check_body(r#"{"details":[{"retryDelay": "34.4s"}]}"#, Some(34_400));
    check_body("try again in a while", None);
    check_body("Rate limit reached", None);
}
