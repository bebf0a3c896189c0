//! Redaction of providers' messages.

use std::collections::BTreeMap;

use reqwest::Url;

use super::{Redactor, Secrets};
use crate::secret::ApiKey;

#[track_caller]
fn check(message: &str, expected: &str) {
    let key = ApiKey::new("local-secret-key");
    let redactor = Redactor {
        secrets: Secrets { key: Some(&key), ..Secrets::default() },
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
    let text = Redactor { secrets: Secrets::default(), conversation: b"" }.short(&"ü".repeat(1000));
    assert_eq!(text.chars().count(), 301);
    assert!(text.ends_with('…'));
}

#[test]
fn a_key_at_the_cut_is_hidden() {
    let key = ApiKey::new("local-secret-key");
    let redactor =
        Redactor { secrets: Secrets { key: Some(&key), ..Secrets::default() }, conversation: b"" };
    let message = format!("{}local-secret-key", "x".repeat(290));
    assert!(!redactor.short(&message).contains("local"));
}

#[test]
fn tokens_and_secrets_of_headers_and_of_the_url_are_hidden() {
    let token = ApiKey::new("token-12345");
    let pairs = [("Authorization", "Bearer header-12345"), ("x-team", "team-blue-1")];
    let headers: BTreeMap<_, _> =
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let url = Url::parse("https://example.com/v1?key=query%2F12345&v=1").unwrap();
    let secrets =
        Secrets { token: Some(&token), headers: Some(&headers), url: Some(&url), key: None };
    let redactor = Redactor { secrets, conversation: b"" };
    assert_eq!(
        redactor.short(
            "Bearer token-12345, header-12345, query%2F12345, query/12345, team-blue-1, v=1"
        ),
        "Bearer […], […], […], […], team-blue-1, v=1"
    );
    assert!(redactor.has_secret("a_header-12345") && !redactor.has_secret("team-blue-1"));
    assert_eq!(format!("{secrets:?}"), "Secrets(…)");
}
