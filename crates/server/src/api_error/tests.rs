//! The status and the text of errors.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, ErrorKind};

use super::ApiError;

fn status(code: ErrorCode) -> u16 {
    ApiError::new(code, "text").status().as_u16()
}

#[test]
fn each_kind_has_its_status() {
    assert_eq!(status(ErrorCode::InputInvalid), 400);
    assert_eq!(status(ErrorCode::SessionNotFound), 404);
    assert_eq!(status(ErrorCode::AlreadyResumed), 409);
    assert_eq!(status(ErrorCode::Superseded), 409);
    assert_eq!(status(ErrorCode::Unsupported), 422);
    assert_eq!(status(ErrorCode::TooLarge), 413);
    assert_eq!(status(ErrorCode::BudgetExceeded), 429);
    assert_eq!(status(ErrorCode::RateLimited), 429);
    assert_eq!(status(ErrorCode::StoreUnavailable), 503);
    assert_eq!(status(ErrorCode::Internal), 500);
}

#[test]
fn only_missing_credentials_are_401_and_only_the_callers() {
    let unauthorized = ErrorCode::ALL.iter().filter(|code| status(**code) == 401);
    assert_eq!(unauthorized.copied().collect::<Vec<_>>(), [ErrorCode::Unauthenticated]);
    assert_eq!(status(ErrorCode::ProviderUnauthorized), 502);
    assert_eq!(status(ErrorCode::ProviderCredentialsExpired), 502);
    assert_eq!(status(ErrorCode::ProviderRateLimited), 503);
}

#[test]
fn an_error_of_the_server_hides_its_cause_and_names_the_request() {
    let error = Error::new(ErrorCode::StoreUnavailable, "10.0.0.7 refused the connection");
    let error = ApiError::from(error.with_retry_after(Duration::from_millis(2_500)));
    let body = error.body("req-1", false).error;
    assert!(!body.message.contains("10.0.0.7"), "{}", body.message);
    assert_eq!((body.request_id.as_deref(), body.retryable), (Some("req-1"), true));
    assert_eq!(error.retry_after_seconds(), Some(3));
    assert!(error.body("req-1", true).error.message.contains("10.0.0.7"));
}

#[test]
fn an_error_of_the_caller_states_its_cause() {
    let error = ApiError::invalid("the message is empty");
    let body = error.body("req-1", false).error;
    assert_eq!((body.message.as_str(), body.request_id), ("the message is empty", None));
    assert_eq!((body.kind.as_str(), body.code.as_str()), ("invalid_input", "input_invalid"));
    assert_eq!(error.retry_after_seconds(), None);
}

#[test]
fn every_retryable_error_of_the_caller_or_the_server_says_when() {
    for code in ErrorCode::ALL.iter().copied().filter(|code| code.kind().is_retryable()) {
        let error = ApiError::new(code, "text");
        let is_late_body = code == ErrorCode::RequestTimeout;
        assert_eq!(error.retry_after_seconds().is_some(), !is_late_body, "{code}");
        assert_ne!(error.code().kind(), ErrorKind::Internal);
    }
}

#[test]
fn a_quota_suggests_no_delay() {
    for code in [ErrorCode::SessionLimit, ErrorCode::BudgetExceeded] {
        let error = ApiError::new(code, "text");
        assert_eq!((error.status().as_u16(), error.retry_after_seconds()), (429, None));
    }
    let limited = ApiError::new(ErrorCode::RateLimited, "text");
    assert_eq!(limited.retry_after(Duration::from_secs(7)).retry_after_seconds(), Some(7));
}
