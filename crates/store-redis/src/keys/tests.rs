//! Hash tags.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::SessionId;

use super::{Keys, member, parts, tag};

/// Returns the part of a key that Redis hashes: between the first `{` and the next `}`.
fn hashed(key: &str) -> &str {
    let (_, rest) = key.split_once('{').unwrap();
    rest.split_once('}').unwrap().0
}

#[test]
fn hash_tags_are_unique_and_complete() {
    let ids =
        ["a", "", "%", "{", "}", "{}", "a}b", "{a}", "%7B", "%7D", "%25", "a:head", "日本語 🦀"];
    let keys = Keys::new("helix").unwrap();
    let mut tags = Vec::new();
    for id in ids {
        let keys = keys.of(&SessionId::from(id));
        let expected = tag(id);
        assert!(!expected.is_empty(), "{id}");
        for key in [keys.head(), keys.log(), keys.kept_log("life"), keys.feed(), keys.written()] {
            assert_eq!(hashed(&key), expected, "{id}");
        }
        tags.push(expected);
    }
    let all = tags.len();
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), all, "{tags:?}");
}

#[test]
fn each_tag_has_a_key_of_its_own() {
    let keys = Keys::new("helix").unwrap();
    let texts = ["a", "=", "a=", "=a", "%3D", "%", "{a}", "}", "日本語 🦀", "a:tagged"];
    let mut found = Vec::new();
    for key in texts {
        for value in texts.into_iter().chain(["", "a\nb"]) {
            let key = keys.tagged(key, value);
            assert!(!hashed(&key).is_empty(), "{key}");
            found.push(key);
        }
    }
    let all = found.len();
    found.sort();
    found.dedup();
    assert_eq!(found.len(), all, "{found:?}");
    assert_eq!(keys.tagged("owner", "ann"), "helix:{owner=ann}:tagged");
}

#[test]
fn index_members_round_trip() {
    let id = SessionId::from("a|b:c");
    assert_eq!(parts(&member(&id, "7\0append")), Some((id, "7\0append")));
    assert_eq!(parts("nothing"), None);
}

#[test]
fn a_prefix_with_special_characters_is_refused() {
    for prefix in ["", "a{b}", "a b", "a*", "ü", &"x".repeat(65)] {
        assert_eq!(Keys::new(prefix).unwrap_err().code(), ErrorCode::ConfigInvalid, "{prefix}");
    }
}
