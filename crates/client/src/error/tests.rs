//! Tests of the conversion of errors.

use std::time::Duration;

use super::*;

fn reported(code: &str, is_retryable: bool) -> ClientError {
    ClientError::reported(Reported {
        code: code.to_owned(),
        kind: ErrorKind::RateLimited,
        message: "later".to_owned(),
        is_retryable,
        status: 429,
        retry_after: Some(Duration::from_secs(7)),
        request_id: Some("req-1".to_owned()),
    })
}

#[test]
fn an_error_of_the_server_keeps_its_code_delay_and_request() {
    let error = reported("rate_limited", true);
    assert_eq!(error.to_string(), "rate_limited: later; status=429, request=req-1");
    let converted = Error::from(error);
    assert_eq!(converted.code(), ErrorCode::RateLimited);
    assert_eq!(converted.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(converted.to_string(), "rate_limited: later; status=429, request=req-1");
}

#[test]
fn a_code_of_a_newer_server_is_kept_and_converted_by_what_it_permits() {
    let error = reported("quota_of_tomorrow", true);
    assert_eq!((error.code(), error.kind()), ("quota_of_tomorrow", ErrorKind::RateLimited));
    assert_eq!(Error::from(error).code(), ErrorCode::ServerUnreachable);
    assert_eq!(Error::from(reported("x", false)).code(), ErrorCode::ServerProtocol);
}
