//! Tests of error codes, kinds and formatting.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Error, ErrorCode, ErrorKind, ErrorRecord};

#[test]
fn codes_have_unique_names_in_snake_case() {
    let names: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names.len(), ErrorCode::ALL.len());
    for name in names {
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
    }
}

#[test]
fn code_names_match_their_variants() {
    for code in ErrorCode::ALL {
        let variant = format!("{code:?}");
        let mut snake = String::new();
        for c in variant.chars() {
            if c.is_ascii_uppercase() && !snake.is_empty() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        assert_eq!(snake, code.as_str());
    }
}

#[test]
fn only_transient_kinds_are_retryable() {
    let retryable: BTreeSet<_> = ErrorCode::ALL
        .iter()
        .filter(|code| code.kind().is_retryable())
        .map(|c| c.as_str())
        .collect();
    let expected = [
        "provider_protocol",
        "provider_rate_limited",
        "provider_stream_cut",
        "provider_timeout",
        "provider_unavailable",
        "rate_limited",
        "request_timeout",
        "server_stopping",
        "server_unreachable",
        "store_busy",
        "store_unavailable",
    ];
    assert_eq!(retryable, expected.into());
}

#[test]
fn an_error_displays_code_operation_message_and_context() {
    let source = std::io::Error::other("disk on fire");
    let error = Error::new(ErrorCode::StoreFull, "could not append")
        .with_operation("store::append")
        .with_context("session", "s1")
        .with_context("bytes", 7)
        .with_retry_after(Duration::from_secs(1))
        .with_source(source);
    assert_eq!(
        error.to_string(),
        "store_full in store::append: could not append; session=s1, bytes=7"
    );
    assert_eq!(error.message(), "could not append");
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(error.context().collect::<Vec<_>>(), [("session", "s1"), ("bytes", "7")]);
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "disk on fire", "in the source, not repeated");
    assert!(format!("{error:#?}").contains("disk on fire"));
}

#[test]
fn debug_output_lists_the_causes() {
    let cause = Error::new(ErrorCode::StoreFull, "no room").with_source(std::fmt::Error);
    let error = Error::new(ErrorCode::Internal, "it broke").with_context("session", "s1");
    assert_eq!(format!("{error:?}"), "internal: it broke; session=s1");
    assert_eq!(
        format!("{:?}", error.with_source(cause)),
        "internal: it broke; session=s1\n\nCaused by:\n    store_full: no room\n    an error \
         occurred when formatting an argument"
    );
}

#[test]
fn a_record_omits_the_context() {
    let error = Error::new(ErrorCode::Refusal, "the model refused").with_context("secret", "x");
    let record = error.record();
    assert_eq!(record, ErrorRecord::new(ErrorCode::Refusal, "the model refused"));
    assert!(record.is(ErrorCode::Refusal) && !record.is(ErrorCode::ContentFilter));
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(text, r#"{"kind":"failed","code":"refusal","message":"the model refused"}"#);
    assert_eq!(serde_json::from_str::<ErrorRecord>(&text).unwrap(), record);
    assert_eq!(record.to_string(), "refusal: the model refused");
}

#[test]
fn a_detail_is_kept_and_not_shown() {
    let error = Error::new(ErrorCode::HookRefused, "a hook refused").with_detail("secret");
    let record = error.record();
    for shown in [error.to_string(), format!("{error:?} {error:#?}")] {
        assert!(!shown.contains("secret"), "{shown}");
    }
    for shown in [record.to_string(), format!("{record:?} {record:#?}")] {
        assert!(!shown.contains("secret"), "{shown}");
    }
    assert_eq!(error.in_full(), "a hook refused: secret");
    let text = serde_json::to_string(&record).unwrap();
    let read: ErrorRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(read.to_error(ErrorCode::Internal).detail(), Some("secret"));
    assert_eq!(record.without_detail().in_full(), "a hook refused");
    let long = Error::new(ErrorCode::Internal, "m").with_detail("x".repeat(10_000));
    assert!(long.detail().unwrap().len() < 1_010);
}

#[test]
fn a_record_with_a_code_of_another_version_is_kept() {
    let text = r#"{"kind":"failed","code":"from_the_future","message":"m"}"#;
    let record: ErrorRecord = serde_json::from_str(text).unwrap();
    assert_eq!(record.code, "from_the_future");
    assert!(ErrorCode::ALL.iter().all(|code| !record.is(*code)));
}

#[test]
fn context_stays_on_one_line() {
    let error =
        Error::new(ErrorCode::SessionNotFound, "none").with_context("session", "a\n\u{1b}[1mb");
    assert_eq!(error.to_string(), r"session_not_found: none; session=a\n\u{1b}[1mb");
    assert_eq!(error.context().next(), Some(("session", "a\n\u{1b}[1mb")));
}
