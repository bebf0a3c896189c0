//! Tests of validated JSON text.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Json, MAX_DEPTH};

#[test]
fn text_stays_as_it_was_written() {
    for text in ["{}", r#"{"b":1,  "a":1.50}"#, "1e300", "\"\\u00e9\"", "null"] {
        assert_eq!(Json::parse(text).unwrap().text(), text);
    }
    assert_eq!(Json::parse("  [1]\t").unwrap().text(), "[1]");
}

#[test]
fn text_of_several_lines_becomes_one() {
    let json = Json::parse("{\n  \"b\": 1,\r\n  \"a\": \"x\\ny\"\n}").unwrap();
    assert_eq!(json.text(), r#"{"b":1,"a":"x\ny"}"#);
    assert!(Json::parse("\n[1,\n2]\n").unwrap().text().lines().count() == 1);
}

#[test]
fn what_is_not_json_is_refused() {
    for text in ["", " ", "{", "{\n", "nul", "{} {}", "'a'", "{\"a\":}"] {
        assert!(Json::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn equality_is_that_of_the_values() {
    let json = |text| Json::parse(text).unwrap();
    assert_eq!(json(r#"{"a": 1, "b": 2}"#), json(r#"{"b":2,"a":1}"#));
    assert_ne!(json("[1, 2]"), json("[2, 1]"));
    assert_ne!(json("1"), json("\"1\""));
}

#[test]
fn values_round_trip() {
    assert_eq!(Json::from(json!({"a": [1]})).to_value(), json!({"a": [1]}));
    assert_eq!(Json::empty_object().to_typed::<BTreeMap<String, Value>>().unwrap().len(), 0);
    assert_eq!(Json::from_serialize("x").unwrap().text(), "\"x\"");
    assert!(Json::from(json!("x")).to_typed::<u8>().is_err());
    let no_json: BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
    assert!(Json::from_serialize(&no_json).is_err());
}

#[test]
fn json_nests_as_a_value_and_not_as_a_string() {
    let json = Json::from(json!({"a": 1}));
    assert_eq!(serde_json::to_string(&[&json]).unwrap(), r#"[{"a":1}]"#);
    assert_eq!(serde_json::from_str::<Vec<Json>>(r#"[{"a":1}]"#).unwrap(), vec![json.clone()]);
    assert_eq!(serde_json::from_value::<Json>(json!({"a": 1})).unwrap(), json);
    assert_eq!(format!("{json:?}"), r#"{"a":1}"#);
}

fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn text_that_no_reader_accepts_is_refused() {
    let too_deep = nested(MAX_DEPTH + 1);
    let bad = [r#"{"text":"\ud83d"}"#, r#"{"\udc00":1}"#, "[1e400]", "-1e999", &too_deep];
    for text in bad {
        assert!(Json::parse(text).is_err(), "{text}");
        let raw = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        assert!(Json::from_serialize(&raw).is_err(), "{text}");
    }
    for text in [r#""\ud83d\ude00""#, "1e308", "123456789012345678901234567890", &nested(MAX_DEPTH)]
    {
        let json = Json::parse(text).unwrap();
        assert_ne!(json.to_value(), Value::Null, "{text}");
        assert_eq!(
            serde_json::from_str::<Json>(&serde_json::to_string(&json).unwrap()).unwrap(),
            json
        );
    }
}

/// Folds of one log are only equal in every process if floats read back exactly as written.
#[test]
fn floats_read_back_as_they_were_written() {
    for float in [0.1 + 0.2, 1.0 / 3.0, 51.24817837550540_4, f64::MIN_POSITIVE, f64::MAX] {
        let text = Json::from_serialize(&float).unwrap();
        assert_eq!(text.to_typed::<f64>().unwrap().to_bits(), float.to_bits(), "{text:?}");
        assert_eq!(Json::from(text.to_value()).text(), text.text());
    }
}
