//! Redaction of providers' messages.

use helix_agents_core::llm::LlmConfig;
use reqwest::Url;
use serde_json::json;

use super::echoes::echoes;
use super::{Form, Redactor, Secrets};
use crate::secret::ApiKey;

fn redactor(secrets: Secrets<'_>) -> Redactor<'_> {
    Redactor { secrets, conversation: b"" }
}

#[track_caller]
fn check(message: &str, expected: &str) {
    let key = ApiKey::new("local-secret-key");
    let redactor = Redactor {
        secrets: Secrets { key: Some(&key), ..Secrets::default() },
        conversation: br#"{"role":"user","content":"My diagnosis is confidential, doctor."}"#,
    };
    assert_eq!(redactor.short(message), expected);
}

/// Checks a message about a call with this header.
#[track_caller]
fn check_header(name: &str, value: &str, message: &str, expected: &str) {
    let mut config = LlmConfig::default();
    config.headers.insert(name.to_owned(), value.to_owned());
    let secrets = Secrets { config: Some(&config), ..Secrets::default() };
    assert_eq!(redactor(secrets).short(message), expected);
}

#[test]
fn harmless_messages_are_kept_on_one_line() {
    check("max_tokens is too\n  large: 9000", "max_tokens is too large: 9000");
    check("100% of the task-force, a%20b", "100% of the task-force, a%20b");
}

#[test]
fn quotes_of_the_conversation_are_hidden() {
    check(
        "invalid input_value='My diagnosis is confidential, doctor.' at 1",
        "invalid input_value='[…]' at 1",
    );
}

#[test]
fn quotes_of_several_lines_are_hidden() {
    let redactor = Redactor {
        secrets: Secrets::default(),
        conversation: br#"{"content":"J. \"Doe\"\nPIN: 4711\nDOB:\t1/2/80"}"#,
    };
    for quote in [
        "J. \"Doe\"\nPIN: 4711\nDOB: 1/2/80",
        r#"J. \"Doe\"\nPIN: 4711\nDOB:\t1/2/80"#,
        "J. \"Doe\" PIN: 4711   DOB: 1/2/80",
    ] {
        assert_eq!(redactor.short(&format!("bad input '{quote}' at 1")), "bad input '[…]' at 1");
    }
    let sixteen = "<J. \"Doe\" PIN: 47>";
    assert_eq!(redactor.short(sixteen), "<[…]>");
    let fifteen = "<J. \"Doe\" PIN: 4>";
    assert_eq!(redactor.short(fifteen), fifteen);
}

#[test]
fn quotes_with_backslashes_are_hidden_at_any_depth_of_escapes() {
    for text in [
        r#"{"note":"PIN: 4711\nSSN: 123-45-678\nDOB: 1/2/80"}"#,
        r"C:\temp\notes\reports\new\budget.txt",
        r"\nabla\times\theta = \rho\tau\nu",
        "It's \u{41c}\u{43e}\u{439} \u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c} \u{1f980}",
    ] {
        let once = json!(text).to_string();
        let conversation = json!({"arguments": once}).to_string();
        let redactor =
            Redactor { secrets: Secrets::default(), conversation: conversation.as_bytes() };
        let inner = |quoted: &str| quoted[1..quoted.len() - 1].to_owned();
        let ascii: String = once
            .encode_utf16()
            .map(|unit| match char::from_u32(unit.into()).filter(char::is_ascii) {
                Some(character) => character.to_string(),
                None => format!("\\u{unit:04x}"),
            })
            .collect();
        let python = text.replace('\'', "\\'");
        let lines = text.replace("\\n", "\n");
        for quote in [text.to_owned(), inner(&once), inner(&ascii), python, lines] {
            assert_eq!(redactor.short(&format!("bad <{quote}> at 1")), "bad <[…]> at 1", "{quote}");
        }
    }
}

#[test]
fn a_message_is_read_in_linear_time() {
    let key = ApiKey::new("local-secret-key");
    let secrets = Secrets { key: Some(&key), ..Secrets::default() };
    let conversation = "sk-".repeat(100_000);
    let redactor = Redactor { secrets, conversation: conversation.as_bytes() };
    for part in ["sk-", "a", "local-secret-key", "%73k-", " \n", "\\"] {
        // Only the start of the message is read.
        let text = redactor.short(&part.repeat(3_000_000));
        assert!(text.chars().count() <= 301 && !text.contains("secret"), "{text}");
        // Each of these would take minutes in quadratic time.
        let long = part.repeat(300_000);
        let is_hidden = echoes(&long, conversation.as_bytes());
        assert_eq!(is_hidden.contains(&true), part == "sk-", "{part}");
        let key = ["sk-", "%73k-"].contains(&part);
        assert_eq!(Form::decoded(&long).keys().len(), usize::from(key), "{part}");
    }
}

#[test]
fn a_key_at_the_end_of_what_is_read_is_hidden() {
    let key = ApiKey::new("local/secret/key");
    let own = Secrets { key: Some(&key), ..Secrets::default() };
    for (secrets, form) in [
        (own, "local/secret/key"),
        (own, "local%2Fsecret%2Fkey"),
        (Secrets::default(), "sk-abcdef123456"),
    ] {
        let redactor = redactor(secrets);
        for before in 4070..4100 {
            let spaces = " ".repeat(before);
            let text = redactor.short(&format!("{spaces}{form} and more"));
            assert!(!text.contains("loc") && !text.contains("sk-"), "{before}: {text}");
        }
    }
    assert_eq!(redactor(Secrets::default()).short(&" ".repeat(5000)), "");
}

#[test]
fn the_key_and_other_keys_are_hidden() {
    check("bad key local-secret-key.", "bad key […].");
    check("bad key 'sk-abcdef123456' given", "bad key '[…]' given");
    check("masked: sk-proj-****yz, sk-ab...wxyz. Or: sk-", "masked: […], […]. Or: sk-");
    check(
        "error for url 'https://host/v1beta/models/g:generateContent?key=AIzaSyAbc_d-9'",
        "error for url 'https://host/v1beta/models/g:generateContent?key=[…]'",
    );
    check("?key%3DAIzaSyAbc_d-9&v=ü", "?key%3D[…]&v=ü");
    check(r#"{"api_key":"sk-abcdef123456","n":1}"#, r#"{"api_key":"[…]","n":1}"#);
}

#[test]
fn an_encoded_key_is_hidden() {
    let key = ApiKey::new("ab/c+d/e==");
    let redactor = redactor(Secrets { key: Some(&key), ..Secrets::default() });
    for form in ["ab/c+d/e==", "ab%2Fc%2Bd%2Fe%3D%3D", "ab%2fc%2bd%2fe%3d%3d", "ab/c%2Bd/e=="] {
        assert_eq!(redactor.short(&format!("ü /v1?key={form}&v=ü")), "ü /v1?key=[…]&v=ü");
    }
}

#[test]
fn long_messages_are_cut() {
    let text = redactor(Secrets::default()).short(&"ü".repeat(1000));
    assert_eq!(text.chars().count(), 301);
    assert!(text.ends_with('…'));
}

#[test]
fn a_key_at_the_cut_is_hidden() {
    let key = ApiKey::new("local-secret-key");
    let redactor = redactor(Secrets { key: Some(&key), ..Secrets::default() });
    let message = format!("{}local-secret-key", "x".repeat(290));
    assert!(!redactor.short(&message).contains("local"));
}

#[test]
fn tokens_and_secrets_of_headers_and_of_the_url_are_hidden() {
    let token = ApiKey::new("token-12345");
    let mut config = LlmConfig::default();
    for (name, value) in [("Authorization", "Bearer header-12345"), ("x-team", "team-blue-1")] {
        config.headers.insert(name.to_owned(), value.to_owned());
    }
    let url = Url::parse("https://example.com/v1?subscription=query%2F12345&v=1&only-value");
    let url = url.unwrap();
    let secrets =
        Secrets { token: Some(&token), config: Some(&config), url: Some(&url), key: None };
    let redactor = redactor(secrets);
    assert_eq!(
        redactor.short(
            "Bearer token-12345, header-12345, query%2F12345, query/12345, team-blue-1, v=1, \
             only-value"
        ),
        "Bearer […], […], […], […], team-blue-1, v=1, […]"
    );
    assert!(redactor.has_secret("a_header-12345") && !redactor.has_secret("team-blue-1"));
    assert_eq!(format!("{secrets:?}"), "Secrets(…)");
    // The name of a parameter is not secret.
    assert_eq!(redactor.short("no subscription"), "no subscription");
    assert!(!redactor.has_secret("subscription_ended"));
}

#[test]
fn every_form_of_a_headers_value_is_hidden() {
    check_header("Cookie", r#"a=b; sid="value-12345""#, "sid value-12345", "sid […]");
    check_header("cookie", "session_id=value-12345", "session_id=value-1", "session_id=value-1");
    check_header("Cookie", "sid=a%2Fvalue-12345", "a/value-12345", "[…]");
    check_header("x-api-key", "ab=cd=ef=gh", "key ab=cd=ef=gh.", "key […].");
    check_header("x-api-key", "abcdefgh/k==", "abcdefgh/k, abcdefgh%2Fk%3D%3D", "[…], […]");
    let basic = "Basic dXNlcjpwYXNzLTEyMw==";
    check_header("Authorization", basic, "user user:pass-123", "user […]");
    check_header("Authorization", basic, "pass-123, dXNlcjpwYXNzLTEyMw", "[…], […]");
    // The password `tiger`.
    check_header("authorization", "basic c2NvdHQ6dGlnZXI", "scott, tiger", "scott, […]");
    check_header("authorization", "Basic %%%", "Basic", "Basic");
}

#[test]
fn secrets_in_provider_options_are_hidden() {
    let mut config = LlmConfig::default();
    let options = json!({
        "mcp_servers": [{"name": "harmless-name", "authorization_token": "option-12345"}],
        "tools": [{"headers": {"X-API-Key": "option-23456", "Authorization": "Bearer option-34567"}}],
        "client_secret": ["option-45678"],
        "max_tokens": 12345678,
    });
    config.provider_options.insert("local".to_owned(), options.as_object().unwrap().clone());
    let secrets = Secrets { config: Some(&config), ..Secrets::default() };
    assert_eq!(
        redactor(secrets).short(
            "harmless-name option-12345, option-23456, option-34567, option-45678, 12345678"
        ),
        "harmless-name […], […], […], […], 12345678"
    );
}

#[test]
fn a_dummy_key_makes_no_message_unreadable() {
    let check = |key: &str, message: &str, expected: &str| {
        let key = ApiKey::new(key);
        let redactor = redactor(Secrets { key: Some(&key), ..Secrets::default() });
        assert_eq!(redactor.short(message), expected);
        assert!(!redactor.has_secret("context_length_exceeded"));
        redactor.has_secret(key.expose())
    };
    assert!(!check("x", "the context is too long", "the context is too long"));
    assert!(check("text", "text: 1", "[…]: 1"));
}
