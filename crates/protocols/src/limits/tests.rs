//! Tests of the limits of requests.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::json::MAX_DEPTH;
use serde_json::Value;

use super::{RequestLimits, check};

fn decode(body: &str) -> Result<Value, ErrorCode> {
    RequestLimits::default().decode(body.as_bytes()).map_err(|error| error.code())
}

#[test]
fn a_body_that_is_nested_too_deeply_is_refused() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(decode(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(decode(&nested(MAX_DEPTH + 1)), Err(ErrorCode::InputInvalid));
    // Brackets in strings do not count, and an escaped quotation mark does not end a string.
    let text = format!(r#"["\"{}"]"#, "[".repeat(200));
    assert!(decode(&text).is_ok());
}

#[test]
fn a_body_beyond_its_limit_is_refused_before_it_is_read() {
    let limits = RequestLimits { body_bytes: 4, ..RequestLimits::default() };
    let error = limits.decode::<Value>(b"nonsense").unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert!(limits.decode::<Value>(b"1234").is_ok());
}

#[test]
fn a_malformed_body_is_refused_without_a_quotation_of_it() {
    let error = RequestLimits::default().decode::<Value>(br#"{"secret": hunter2}"#).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InputInvalid);
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert!(check("the text", 3, 3).is_ok());
    assert!(check("the text", 4, 3).is_err());
}
