//! Hash tags.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::SessionId;

use super::{Keys, member, parts, tag};

/// What Redis takes as the tag of a key: between the first `{` and the first `}` after it.
fn hashed(key: &str) -> &str {
    let (_, rest) = key.split_once('{').unwrap();
    rest.split_once('}').unwrap().0
}

#[test]
fn no_id_ends_its_tag_or_has_that_of_another_one() {
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
fn a_member_is_taken_apart_as_it_was_made() {
    let id = SessionId::from("a|b:c");
    assert_eq!(parts(&member(&id, "7\0append")), Some((id, "7\0append")));
    assert_eq!(parts("nothing"), None);
}

#[test]
fn a_prefix_means_nothing_to_redis() {
    for prefix in ["", "a{b}", "a b", "a*", "ü", &"x".repeat(65)] {
        assert_eq!(Keys::new(prefix).unwrap_err().code(), ErrorCode::ConfigInvalid, "{prefix}");
    }
}
