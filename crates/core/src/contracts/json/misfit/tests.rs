//! Tests of misfit descriptions, which contain no content of the value.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::misfit;
use crate::json::Json;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "what is read is not looked at")]
struct All {
    number: u32,
    list: Vec<Option<bool>>,
    by_name: BTreeMap<String, u8>,
    by_number: BTreeMap<u16, f64>,
    choice: Choice,
    tagged: Tagged,
    any: Json,
    checked: Checked,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "what is read is not looked at")]
enum Choice {
    None,
    One(u32),
    Two(u32, u32),
    Many { of: u32 },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "what is read is not looked at")]
enum Tagged {
    Small { of: u32 },
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Checked;

impl TryFrom<String> for Checked {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.contains("secret") { Err(format!("not `{text}`")) } else { Ok(Self) }
    }
}

fn fitting() -> Value {
    json!({
        "number": 1,
        "list": [true, null],
        "by_name": {"a": 1},
        "by_number": {"7": 1.5},
        "choice": {"many": {"of": 1}},
        "tagged": {"type": "small", "of": 1},
        "any": {"x": [1]},
        "checked": "x",
    })
}

/// Returns the misfit after replacing the value at `place`. serde also rejects the result.
fn reported(place: &str, value: Value) -> String {
    let mut whole = fitting();
    *whole.pointer_mut(place).unwrap() = value;
    wrong::<All>(&whole)
}

fn wrong<T: DeserializeOwned>(value: &Value) -> String {
    assert!(serde_json::from_value::<T>(value.clone()).is_err(), "{value} fits");
    let reported = misfit::<T>(value);
    assert!(!reported.contains("secret"), "{reported}");
    reported
}

#[test]
fn a_value_that_fits_is_read_as_serde_reads_it() {
    assert!(serde_json::from_value::<All>(fitting()).is_ok());
    for choice in [json!("none"), json!({"one": 1}), json!({"two": [1, 2]})] {
        let mut whole = fitting();
        whole["choice"] = choice;
        // Nothing is wrong, so no place is reported.
        assert_eq!(misfit::<All>(&whole), "its type rejects the value");
    }
}

#[test]
fn the_place_the_kind_and_the_expectation_are_reported() {
    for (place, value, expected) in [
        ("/number", json!("secret"), "at /number: a string of 6 bytes where u32 is expected"),
        ("/number", json!(-4111), "at /number: an integer is not u32"),
        ("/number", json!(4.5), "at /number: a float where u32 is expected"),
        ("/list/1", json!("secret"), "at /list/1: a string of 6 bytes where a boolean is expected"),
        ("/list", json!({"secret": 1}), "at /list: an object where a sequence is expected"),
        ("/by_name", json!({"secret": 300}), "at /by_name/*: an integer is not u8"),
        (
            "/by_number",
            json!({"secret": 1}),
            "at /by_number: a string of 6 bytes where u16 is expected",
        ),
        ("/choice", json!("one"), "at /choice: a variant without its content"),
        (
            "/choice",
            json!({"one": "secret"}),
            "at /choice/one: a string of 6 bytes where u32 is expected",
        ),
        (
            "/choice",
            json!({"many": {"of": null}}),
            "at /choice/many/of: null where u32 is expected",
        ),
        (
            "/choice",
            json!({"secret": 1}),
            "at /choice: an unknown variant; the variants are none, one, two, many",
        ),
        (
            "/choice",
            json!(["secret"]),
            "at /choice: an array of 1 where one variant of none, one, two, many is expected",
        ),
        (
            "/tagged/type",
            json!("secret"),
            "at /tagged/*: an unknown variant; the variants are small",
        ),
        ("/tagged/of", json!("secret"), "at /tagged: a string of 6 bytes where u32 is expected"),
        ("/checked", json!("secret"), "at /checked: its type rejects the value"),
    ] {
        assert_eq!(reported(place, value), expected);
    }
}

#[test]
fn only_member_names_of_the_type_are_reported() {
    let mut whole = fitting();
    whole.as_object_mut().unwrap().remove("number");
    assert_eq!(wrong::<All>(&whole), "the member `number` is missing");
    let mut whole = fitting();
    whole["secret"] = json!(1);
    let reported = wrong::<All>(&whole);
    assert!(reported.starts_with("an unknown member; the members are number, list"), "{reported}");
}
