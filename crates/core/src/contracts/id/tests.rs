//! Tests of ids.

use super::{AppendId, CallId, MAX_ID_BYTES, RunId, SessionId};
use crate::error::ErrorCode;

#[test]
fn ordinary_text_is_a_valid_id() {
    for text in ["a", "user/42", "日本語", "with space", "subagent", "agent-1", "a-sub", "ses_0"]
    {
        assert_eq!(SessionId::validated(text).unwrap().as_str(), text);
        assert_eq!(RunId::validated(text).unwrap().as_str(), text);
    }
}

#[test]
fn an_id_has_at_most_two_hundred_bytes() {
    assert!(SessionId::validated("x".repeat(MAX_ID_BYTES)).is_ok());
    let error = SessionId::validated("x".repeat(MAX_ID_BYTES + 1)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::IdInvalid);
    assert_eq!(error.message(), "the session id is longer than 200 bytes");
    let wide = "ü".repeat(101);
    assert!(RunId::validated(wide).is_err(), "bytes, not characters");
}

#[test]
fn an_id_is_not_empty_and_holds_no_control_character() {
    for text in ["", "a\nb", "a\0", "\u{7f}", "\u{85}"] {
        assert_eq!(
            SessionId::validated(text).unwrap_err().code(),
            ErrorCode::IdInvalid,
            "{text:?}"
        );
        assert_eq!(RunId::validated(text).unwrap_err().code(), ErrorCode::IdInvalid, "{text:?}");
    }
}

#[test]
fn a_control_character_is_found_at_every_place_of_an_id() {
    let characters = (0..=0x2ff).filter_map(char::from_u32);
    for character in characters {
        for place in 0..20 {
            let mut text = "a".repeat(20);
            text.replace_range(place..=place, &character.to_string());
            let is_printable_ascii = matches!(character, ' '..='~');
            assert_eq!(super::is_printable_ascii(text.as_bytes()), is_printable_ascii, "{text:?}");
            let is_valid = !character.is_control();
            assert_eq!(RunId::validated(text).is_ok(), is_valid, "{character:?} at {place}");
        }
    }
}

#[test]
fn names_of_childrens_sessions_are_reserved() {
    for text in ["a-sub-1.0", "-sub-", "a-agent-critic"] {
        let error = SessionId::validated(text).unwrap_err();
        assert_eq!(error.code(), ErrorCode::IdInvalid);
        assert!(error.message().contains("-sub-"), "{error}");
        assert!(RunId::validated(text).is_ok(), "runs have no children");
    }
}

#[test]
fn a_call_id_is_its_step_and_its_place_in_the_reply() {
    let id = CallId::new(12, 3);
    assert_eq!(id.as_str(), "12.3");
    assert_eq!(id.step(), Some(12));
    for foreign in ["call_abc", "x.1", "", "4294967296.0"] {
        assert_eq!(CallId::from(foreign).step(), None, "{foreign}");
    }
}

#[test]
fn ids_are_plain_strings_in_json_and_debug_with_their_type() {
    let id = SessionId::from("s");
    assert_eq!(serde_json::to_string(&id).unwrap(), r#""s""#);
    assert_eq!(serde_json::from_str::<SessionId>(r#""s""#).unwrap(), id);
    assert_eq!(format!("{id} {id:?}"), "s SessionId(s)");
    assert_eq!(AppendId::none().as_str(), "");
}
