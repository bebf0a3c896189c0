//! Tests of the limits of tags.

use super::{MAX_TAG_KEY_BYTES, MAX_TAG_VALUE_BYTES, MAX_TAGS, check};
use crate::error::ErrorCode;

#[test]
fn tags_up_to_the_limits_are_valid() {
    let long = "v".repeat(MAX_TAG_VALUE_BYTES);
    let tag = |number: usize| (format!("{number:0>MAX_TAG_KEY_BYTES$}"), long.clone());
    assert!(check(&(0..MAX_TAGS).map(tag).collect()).is_ok());
    for value in ["", " ", "line\nline", "\u{7f}", "=", "日本語 🦀"] {
        assert!(check(&[("k=é ".to_owned(), value.to_owned())].into()).is_ok(), "{value:?}");
    }
}

#[test]
fn tags_beyond_the_limits_are_refused() {
    let many = (0..=MAX_TAGS).map(|number| (number.to_string(), String::new())).collect();
    assert_eq!(check(&many).unwrap_err().code(), ErrorCode::TagInvalid);
    let long_key = "ü".repeat(MAX_TAG_KEY_BYTES / 2 + 1);
    let long_value = "v".repeat(MAX_TAG_VALUE_BYTES + 1);
    for (key, value) in [("", "v"), (&*long_key, "v"), ("a\tb", "v"), ("k", &*long_value)] {
        let error = check(&[(key.to_owned(), value.to_owned())].into()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::TagInvalid, "{key:?}");
    }
    let error = check(&[("k".to_owned(), "a\0b".to_owned())].into()).unwrap_err();
    assert!(error.context().any(|fact| fact == ("key", "k")), "{error}");
    assert!(!error.to_string().contains("a\0b"), "{error}");
}
