//! Redaction of providers' messages.

use super::Redactor;
use crate::secret::ApiKey;

#[track_caller]
fn check(message: &str, expected: &str) {
    let key = ApiKey::new("local-secret-key");
    let redactor = Redactor {
        key: Some(&key),
        conversation: br#"{"role":"user","content":"My diagnosis is confidential, doctor."}"#,
    };
    assert_eq!(redactor.short(message), expected);
}

#[test]
fn harmless_messages_are_kept_on_one_line() {
    check("max_tokens is too\n  large: 9000", "max_tokens is too large: 9000");
}

#[test]
fn quotes_of_the_conversation_are_hidden() {
    check(
        "invalid input_value='My diagnosis is confidential, doctor.' at 1",
        "invalid input_value='[…]' at 1",
    );
}

#[test]
fn the_key_and_other_keys_are_hidden() {
    check("bad key local-secret-key.", "bad key […].");
    check("bad key 'sk-abcdef123456' given", "bad key […] given");
}

#[test]
fn long_messages_are_cut() {
    let text = Redactor { key: None, conversation: b"" }.short(&"ü".repeat(1000));
    assert_eq!(text.chars().count(), 301);
    assert!(text.ends_with('…'));
}

#[test]
fn a_key_at_the_cut_is_hidden() {
    let key = ApiKey::new("local-secret-key");
    let redactor = Redactor { key: Some(&key), conversation: b"" };
    let message = format!("{}local-secret-key", "x".repeat(290));
    assert!(!redactor.short(&message).contains("local"));
}
