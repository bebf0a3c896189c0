//! Bearer tokens in requests.

use std::time::Duration;

use http::Request;

use super::Bearer;
use crate::auth::{Action, Authorizer as _, Refusal, Scope, Tokens, token_digest};

fn bearer() -> Bearer {
    let entry = |name, role, token| {
        let digest = token_digest(token);
        format!("[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{digest}\"\n")
    };
    let file =
        entry("ann", "user", "u") + &entry("ann", "reader", "r") + &entry("eve", "admin", "a");
    Bearer::new(Tokens::parse(&file).unwrap())
}

async fn authorize(headers: &[&str], action: Action) -> Result<(String, bool), Refusal> {
    let mut request = Request::builder();
    for header in headers {
        request = request.header("authorization", *header);
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let principal = bearer().authorize(&parts, action).await?;
    Ok((principal.id().to_owned(), principal.has_scope(Scope::AllSessions)))
}

#[tokio::test]
async fn a_known_token_is_its_name_with_the_rights_of_its_role() {
    assert_eq!(authorize(&["Bearer u"], Action::Start).await, Ok(("ann".to_owned(), false)));
    assert_eq!(authorize(&["bearer r"], Action::Read).await, Ok(("ann".to_owned(), false)));
    assert_eq!(authorize(&["Bearer r"], Action::Start).await, Err(Refusal::Forbidden));
    assert_eq!(authorize(&["Bearer a"], Action::Delete).await, Ok(("eve".to_owned(), true)));
}

#[tokio::test]
async fn any_other_header_is_refused() {
    for headers in [
        &[][..],
        &[""],
        &["Bearer"],
        &["Bearer "],
        &["Bearer x"],
        &["Basic u"],
        &["u"],
        &["Bearer u", "Bearer u"],
    ] {
        let refused = authorize(headers, Action::Read).await;
        assert_eq!(refused, Err(Refusal::Unauthenticated), "{headers:?}");
    }
}

fn entry(name: &str, token: &str) -> String {
    let digest = token_digest(token);
    format!("[[token]]\nname = \"{name}\"\nrole = \"user\"\nsha256 = \"{digest}\"\n")
}

async fn is_accepted(bearer: &Bearer, token: &str) -> bool {
    let request = Request::builder().header("authorization", format!("Bearer {token}"));
    let (parts, ()) = request.body(()).unwrap().into_parts();
    bearer.authorize(&parts, Action::Read).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_is_read_after_a_second_and_an_invalid_one_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    let write = |text: &str| {
        // As the documentation advises: another file takes the place of the first one.
        std::fs::write(folder.path().join("new"), text).unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
    };
    write(&entry("ann", "one"));
    let bearer = Bearer::new(Tokens::read(&path).unwrap());
    assert!(is_accepted(&bearer, "one").await);

    write(&(entry("ann", "two") + &entry("bob", "three")));
    tokio::time::advance(Duration::from_millis(900)).await;
    assert!(is_accepted(&bearer, "one").await && !is_accepted(&bearer, "two").await);
    tokio::time::advance(Duration::from_millis(100)).await;
    assert!(is_accepted(&bearer, "two").await && is_accepted(&bearer, "three").await);
    assert!(!is_accepted(&bearer, "one").await);

    for bad in [None, Some("[[token]]\nname = 7\n")] {
        match bad {
            Some(text) => write(text),
            None => std::fs::remove_file(&path).unwrap(),
        }
        for _ in 0..2 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(is_accepted(&bearer, "two").await);
        }
    }
    write(&entry("bob", "three"));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(!is_accepted(&bearer, "two").await && is_accepted(&bearer, "three").await);
}
