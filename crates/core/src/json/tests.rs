//! JSON text that is checked once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Json;

#[test]
fn text_stays_as_it_was_written() {
    for text in ["{}", r#"{"b":1,  "a":1.50}"#, "1e400", "\"\\u00e9\"", "null"] {
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
fn values_go_in_and_come_out() {
    assert_eq!(Json::from(json!({"a": [1]})).to_value(), json!({"a": [1]}));
    assert_eq!(Json::empty_object().to_typed::<BTreeMap<String, Value>>().unwrap().len(), 0);
    assert_eq!(Json::from_serialize("x").unwrap().text(), "\"x\"");
    assert!(Json::from(json!("x")).to_typed::<u8>().is_err());
    let no_json: BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
    assert!(Json::from_serialize(&no_json).is_err());
}

#[test]
fn inside_of_other_json_it_is_no_string() {
    let json = Json::from(json!({"a": 1}));
    assert_eq!(serde_json::to_string(&[&json]).unwrap(), r#"[{"a":1}]"#);
    assert_eq!(serde_json::from_str::<Vec<Json>>(r#"[{"a":1}]"#).unwrap(), vec![json.clone()]);
    assert_eq!(serde_json::from_value::<Json>(json!({"a": 1})).unwrap(), json);
    assert_eq!(format!("{json:?}"), r#"{"a":1}"#);
}
