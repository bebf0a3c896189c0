//! The file of tokens.

use helix_agents_core::error::ErrorCode;

use super::{Role, Tokens, token_digest};

fn file(name: &str, role: &str, digest: &str) -> String {
    format!("[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{digest}\"\n")
}

#[test]
fn a_token_is_found_by_its_digest() {
    let two =
        file("ann", "user", &token_digest("one")) + &file("bob", "admin", &token_digest("two"));
    let tokens = Tokens::parse(&two).unwrap();
    assert_eq!(tokens.find("one"), Some(("ann", Role::User)));
    assert_eq!(tokens.find("two"), Some(("bob", Role::Admin)));
    assert_eq!(tokens.find("three"), None);
    assert_eq!(tokens.find(&token_digest("one")), None);
    assert!(!format!("{tokens:?}").contains(&token_digest("one")));
}

#[test]
fn a_wrong_file_is_refused_without_quoting_it() {
    let secret = "5f2c61d09b7e4a35b1f0c2d3e4a59687";
    for wrong in [
        file("ann", "user", secret),
        file("ann", "owner", &token_digest(secret)),
        file("", "user", &token_digest(secret)),
        format!("[[token]]\nname = \"ann\"\nrole = \"user\"\ntoken = \"{secret}\"\n"),
        file("ann", "user", &token_digest(secret)) + &file("bob", "user", &token_digest(secret)),
    ] {
        let error = Tokens::parse(&wrong).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid);
        assert!(!format!("{error:#?}").contains(secret), "{error:#?}");
    }
}

#[test]
fn a_missing_file_is_reported_with_its_path() {
    let error = Tokens::read("/nonexistent/tokens.toml").unwrap_err();
    assert!(error.to_string().contains("/nonexistent/tokens.toml"), "{error}");
}
