//! The scan compared with a parser, and the amount of its work.

use proptest::prelude::*;
use serde_json::Value;

use super::JsonScan;

fn is_complete(text: &str) -> bool {
    JsonScan::default().is_complete(text)
}

#[test]
fn only_a_whole_object_list_or_string_is_complete() {
    let whole = ["{}", "[]", r#""""#, " {\"a\": [1, {}]}\n", r#"{"a":"}\"{"}"#, r#""\\""#, "[{}]"];
    for text in whole {
        assert!(is_complete(text), "{text}");
        let (start, _) = text.trim().split_at(text.trim().len() - 1);
        assert!(!is_complete(start), "{start}");
    }
    for text in ["", " ", "1", "tru", "null", "{", "{}{", "{} x", "x{}", "}{", r#""a" "b""#] {
        assert!(!is_complete(text), "{text}");
    }
}

/// The text before a piece is replaced with other text, which the scan must not notice.
#[test]
fn no_byte_is_read_twice() {
    let whole = format!(r#"{{"text":"{}"}}"#, "long ".repeat(1000));
    let mut scan = JsonScan::default();
    for end in 1..whole.len() {
        let text = format!("{}{}", "}".repeat(end - 1), &whole[end - 1..end]);
        assert!(!scan.is_complete(&text), "{end} bytes");
        assert_eq!(scan.scanned, end);
    }
    assert!(scan.is_complete(&whole));
    assert!(scan.is_complete(&whole), "nothing was added");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        r#"[a-z{}\[\]"\\\nż🦀]{0,8}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"]{0,3}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn json_is_complete_at_its_end_and_not_before(value in value(), pretty in any::<bool>()) {
        let text = match pretty {
            true => serde_json::to_string_pretty(&value).unwrap(),
            false => value.to_string(),
        };
        let mut scan = JsonScan::default();
        for (end, _) in text.char_indices() {
            prop_assert!(!scan.is_complete(&text[..end]), "{}", &text[..end]);
        }
        let has_end = !value.is_null() && !value.is_number();
        prop_assert_eq!(scan.is_complete(&text), has_end);
    }
}
