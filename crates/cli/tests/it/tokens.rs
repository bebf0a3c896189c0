//! Tests of `helix token`.

use std::os::unix::fs::PermissionsExt as _;

use helix_agents::server::{Tokens, token_digest};
use serde_json::Value;

use crate::support::TestDir;

async fn added(dir: &TestDir, args: &[&str]) -> String {
    let done = dir.helix(&[&["token", "add"], args].concat()).await;
    assert_eq!(done.code, 0, "{done:?}");
    let token = done.stdout.trim().to_owned();
    assert!(token.starts_with("helix_") && token.len() == 6 + 64, "{token}");
    assert!(!done.stderr.contains(&token), "{done:?}");
    token
}

#[tokio::test]
async fn an_added_token_is_printed_once_and_the_file_has_its_digest() {
    let dir = TestDir::new();
    let ann = added(&dir, &["ann"]).await;
    let bob = added(&dir, &["bob", "--role", "reader"]).await;
    assert_ne!(ann, bob);
    let text = std::fs::read_to_string(dir.path("tokens.toml")).unwrap();
    assert!(!text.contains(&ann[6..]) && text.contains(&token_digest(&ann)), "{text}");
    let mode = std::fs::metadata(dir.path("tokens.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(Tokens::read(dir.path("tokens.toml")).unwrap().len(), 2);

    let listed = dir.helix(&["token", "list", "--json"]).await.json();
    let member = |index: usize, name: &str| listed[index][name].as_str().unwrap().to_owned();
    assert_eq!((member(0, "name"), member(0, "role")), ("ann".to_owned(), "user".to_owned()));
    assert_eq!((member(1, "role"), member(1, "sha256")), ("reader".to_owned(), token_digest(&bob)));
    let shown = dir.helix(&["token", "list"]).await.stdout;
    assert!(shown.contains("NAME") && shown.contains(&token_digest(&bob)[..8]), "{shown}");
    assert!(!shown.contains(&token_digest(&bob)), "{shown}");
}

#[tokio::test]
async fn a_revoked_user_has_no_tokens_left() {
    let dir = TestDir::new();
    for name in ["ann", "bob", "ann"] {
        added(&dir, &[name, "--tokens", "other.toml"]).await;
    }
    dir.write("helix.toml", "[serve]\ntokens = \"other.toml\"\n");
    let done = dir.helix(&["token", "revoke", "ann", "--json"]).await;
    assert_eq!((done.code, &done.json()["revoked"]), (0, &Value::from(2)));
    let listed = dir.helix(&["token", "list", "--json"]).await.json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["name"]), (1, &"bob".into()));
    let again = dir.helix(&["token", "revoke", "ann", "--json"]).await;
    assert_eq!((again.code, &again.json_error()["code"]), (1, &"input_invalid".into()));
}

#[tokio::test]
async fn a_file_that_the_server_would_refuse_is_not_changed() {
    let dir = TestDir::new();
    dir.write("tokens.toml", "[[token]]\nname = \"ann\"\nrole = \"king\"\nsha256 = \"s3cret\"\n");
    let before = std::fs::read(dir.path("tokens.toml")).unwrap();
    let done = dir.helix(&["token", "add", "bob", "--json"]).await;
    assert_eq!((done.code, &done.json_error()["code"]), (1, &"config_invalid".into()));
    assert!(!done.stderr.contains("s3cret"), "{done:?}");
    assert_eq!(std::fs::read(dir.path("tokens.toml")).unwrap(), before);
    let invalid = TestDir::new();
    assert_eq!(invalid.helix(&["token", "add", ""]).await.code, 1);
    assert!(!invalid.path("tokens.toml").exists());
}
