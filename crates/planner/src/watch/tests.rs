//! The point from which the rest of a plan cannot matter.

use super::Watch;
use crate::decision::{Decision, NextAction};

/// Returns the number of bytes, read character by character, until the outcome is certain.
fn certain_after(text: &str) -> Option<usize> {
    let mut watch = Watch::default();
    let mut pieces = text.char_indices();
    pieces.find_map(|(at, letter)| {
        watch.feed(letter.encode_utf8(&mut [0; 4])).then_some(at + letter.len_utf8())
    })
}

#[test]
fn it_is_certain_with_the_closing_quote() {
    let begin = r#"{"next_action": "response""#;
    let text = format!(r#"{begin}, "execution_commands": []}}"#);
    assert_eq!(certain_after(&text), Some(begin.len()));
    assert!(Watch::default().feed(begin), "in one piece");
    assert_eq!(certain_after(r#"{"next_action": "response"#), None);
    assert_eq!(certain_after(r#"{"next_action": "RESPONSE""#), Some(26));
}

#[test]
fn preceding_text_and_other_members_do_not_matter() {
    for text in [
        "```json\n{\"next_action\":\"response\"",
        r#"{"why":"{\"next_action\":\"execute\"}","next_action":"response""#,
        r#"{"a":{"next_action":"execute","b":[1,{"c":"]"}]},"n":null,"next_action":"response""#,
        r#"{"next_\u0061ction":"respons\u0065""#,
        "{\"grüße\":\"🦀\",\"next_action\":\"response\"",
    ] {
        assert_eq!(certain_after(text), Some(text.len()), "{text}");
    }
}

#[test]
fn anything_else_waits_for_the_whole_plan() {
    for text in [
        r#"{"next_action":"execute","next_action":"response"}"#,
        r#"{"next_action":"responses"}"#,
        r#"{"next_action":"resp\"onse"}"#,
        r#"{"Next_action":"response"}"#,
        r#"{"a":{"next_action":"response"}}"#,
        r#"{"a":["next_action","response"]}"#,
        r#"{"next_action":["response"]}"#,
        r#"{"next_action":null,"x":"response"}"#,
        r#"{"x":"next_action"}, {"next_action":"response"}"#,
        r#"{"next_action" "response"}"#,
        r#"{"next_action":true,"y":"response"}"#,
        r#""next_action":"response""#,
        "response",
        "",
    ] {
        assert_eq!(certain_after(text), None, "{text}");
    }
}

/// A plan that is cut short must mean the same as the whole plan.
#[test]
fn it_never_contradicts_the_whole_plan() {
    let commands = r#""execution_commands":[{"tool_name":"t"}]"#;
    for value in [r#""response""#, r#"" response ""#, r#""Response""#, r#""execute""#, "null", "7"]
    {
        let text = format!("{{\"next_action\":{value},{commands}}}");
        let decision = Decision::normalise(&serde_json::from_str(&text).unwrap());
        if certain_after(&text).is_some() {
            assert_eq!(decision.next_action, NextAction::Response, "{text}");
        }
    }
}

#[test]
fn a_string_without_end_takes_no_memory() {
    let mut watch = Watch::default();
    watch.feed("{\"");
    for _ in 0..10_000 {
        watch.feed("aaaaaaaaaaaaaaaa");
    }
    assert!(watch.string.is_some_and(|string| string.len() < 100));
}
