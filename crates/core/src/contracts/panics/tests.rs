//! Tests of caught panics.

use futures_util::FutureExt;

use super::{caught, caught_async};
use crate::error::ErrorCode;

#[test]
fn code_that_does_not_panic_returns() {
    assert_eq!(caught("the code", || 1), Ok(1));
    assert_eq!(caught_async("the code", || async { 1 }).now_or_never(), Some(Ok(1)));
}

#[test]
fn a_panic_is_an_error_without_its_message() {
    let formatted = caught("the hook", || panic!("at {}", 1)).map(|(): ()| ()).unwrap_err();
    assert_eq!(formatted.to_string(), "the hook panicked");
    let other = caught("the code", || std::panic::panic_any(1)).map(|(): ()| ()).unwrap_err();
    assert_eq!(format!("{other:?}"), "Panicked { what: \"the code\", .. }");
    assert_eq!(
        (formatted.in_full(), other.in_full()),
        ("the hook panicked: at 1".into(), "the code panicked: no message".into())
    );
}

#[test]
fn a_future_is_caught_on_creation_and_on_poll() {
    let making = caught_async("the code", || -> std::future::Ready<()> { panic!("early") });
    assert_eq!(making.now_or_never().unwrap().unwrap_err().to_string(), "the code panicked");
    let polling = caught_async("the code", || async { panic!("late") }).now_or_never().unwrap();
    assert_eq!(polling.map(|(): ()| ()).unwrap_err().to_string(), "the code panicked");
}

#[test]
fn a_run_error_does_not_repeat_the_panic_message() {
    let panicked = caught("`stop_when`", || panic!("secret")).map(|(): ()| ()).unwrap_err();
    let error = panicked.into_error();
    assert_eq!(error.code(), ErrorCode::CodePanicked);
    assert_eq!(error.message(), "`stop_when` panicked; the process's panic hook has its message");
}
