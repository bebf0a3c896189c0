//! Tests of the retry policy and of settings as JSON.

use std::time::Duration;

use serde_json::json;

use super::{LlmConfig, RetryPolicy};
use crate::error::{Error, ErrorCode};

const POLICY: RetryPolicy =
    RetryPolicy::new(3).base(Duration::from_millis(100)).max(Duration::from_millis(350));

fn unavailable() -> Error {
    Error::new(ErrorCode::ProviderUnavailable, "down")
}

fn waits(jitter: u64) -> Vec<Option<u128>> {
    (0..5)
        .map(|retry| POLICY.wait(retry, &unavailable(), jitter).map(|wait| wait.as_millis()))
        .collect()
}

#[test]
fn waits_double_up_to_the_maximum_and_end_with_the_retries() {
    assert_eq!(waits(0), [Some(100), Some(200), Some(350), None, None]);
}

#[test]
fn jitter_reduces_a_wait_by_at_most_half() {
    for jitter in 0..2000 {
        let wait = POLICY.wait(1, &unavailable(), jitter).unwrap();
        assert!((100..=200).contains(&wait.as_millis()), "{wait:?}");
    }
    assert_eq!(
        POLICY.wait(1, &unavailable(), 100).unwrap().as_millis(),
        100,
        "jitter removes the whole half"
    );
    assert!(POLICY.wait(1, &unavailable(), u64::MAX).is_some());
}

#[test]
fn a_requested_wait_is_exact_and_there_is_no_retry_if_it_is_too_long() {
    let asked = |millis| unavailable().with_retry_after(Duration::from_millis(millis));
    for jitter in [0, 7, 99] {
        assert_eq!(POLICY.wait(0, &asked(350), jitter), Some(Duration::from_millis(350)));
    }
    assert_eq!(POLICY.wait(0, &asked(351), 0), None);
}

#[test]
fn a_requested_wait_does_not_undercut_the_policy() {
    for millis in [0, 1, 99] {
        let error = unavailable().with_retry_after(Duration::from_millis(millis));
        for (retry, jitter) in [(0, 0), (1, 7), (2, 99)] {
            let own = POLICY.wait(retry, &unavailable(), jitter);
            assert_eq!(POLICY.wait(retry, &error, jitter), own, "{millis} ms");
        }
        assert_eq!(POLICY.wait(3, &error, 0), None);
    }
}

#[test]
fn only_transient_errors_are_retried() {
    for code in ErrorCode::ALL {
        let wait = POLICY.wait(0, &Error::new(*code, "x"), 0);
        assert_eq!(wait.is_some(), code.kind().is_retryable(), "{code}");
    }
}

#[test]
fn extreme_policies_neither_panic_nor_wait_forever() {
    let never = RetryPolicy { max_retries: 0, ..POLICY };
    assert_eq!(never.wait(0, &unavailable(), 0), None);
    let eager = RetryPolicy { base: Duration::ZERO, ..POLICY };
    assert_eq!(eager.wait(0, &unavailable(), 99), Some(Duration::ZERO));
    let patient = RetryPolicy::new(u32::MAX).base(Duration::MAX).max(Duration::MAX);
    assert!(patient.wait(u32::MAX - 1, &unavailable(), 0).is_some());
}

#[test]
fn the_default_is_three_retries_from_half_a_second_to_a_minute() {
    let policy = RetryPolicy::default();
    let expected = (3, Duration::from_millis(500), Duration::from_secs(60));
    assert_eq!((policy.max_retries, policy.base, policy.max), expected);
}

#[test]
fn unset_settings_are_omitted_and_unknown_ones_rejected() {
    let config = LlmConfig::new("p:m");
    let expected = json!({"model": "p:m", "strict_output": false, "native_output": false});
    assert_eq!(serde_json::to_value(&config).unwrap(), expected);
    assert_eq!(serde_json::from_value::<LlmConfig>(expected).unwrap(), config);
    let error = serde_json::from_value::<LlmConfig>(json!({"modle": "p:m"})).unwrap_err();
    assert!(error.to_string().contains("modle"), "{error}");
}

#[test]
fn debug_output_of_settings_has_no_secrets() {
    let mut config = super::LlmConfig::default();
    config.headers.insert("x-key".to_owned(), "hush".to_owned());
    let text = format!("{config:?}");
    assert!(text.contains("x-key") && !text.contains("hush"), "{text}");
}
