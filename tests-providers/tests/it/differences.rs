//! Cases with differences, which the player has to report.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{SAMPLES, play};

const CHAT: &str = "openai/chat/text_stream";
const REASONING: &str = "openai/responses/reasoning_and_call_stream";

/// Reads a JSON file of a sample.
#[track_caller]
fn read(sample: &str, extension: &str) -> Value {
    let text = fs::read_to_string(Path::new(SAMPLES).join(format!("{sample}.{extension}")));
    serde_json::from_str(&text.unwrap()).unwrap()
}

/// Creates a folder with one case.
fn folder(name: &str, case: &Value, expected: &Value) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |extension: &str| folder.path().join(format!("{name}.{extension}"));
    fs::create_dir_all(path("json").parent().unwrap()).unwrap();
    fs::write(path("json"), case.to_string()).unwrap();
    fs::write(path("expect.json"), expected.to_string()).unwrap();
    folder
}

/// Plays the case in a folder, which has this difference or none.
#[track_caller]
fn assert_difference(folder: &TempDir, difference: Option<&str>) {
    let played = play(&[folder.path().to_str().unwrap()]);
    assert_eq!(played.is_success, difference.is_none(), "{difference:?}: {}", played.text);
    let difference = difference.unwrap_or("0 differences");
    assert!(played.text.contains(difference), "{difference}: {}", played.text);
}

#[test]
fn a_difference_fails() {
    for (sample, member, wrong, difference) in [
        (CHAT, "/outcome", json!("error"), r#"outcome is "message" instead of "error""#),
        (CHAT, "/stop", json!("max_tokens"), r#"stop is "end_turn" instead of "max_tokens""#),
        (CHAT, "/text", json!("Hello"), "text is "),
        (CHAT, "/usage/input", json!(13), "usage is "),
        (REASONING, "/calls", json!([]), "1 calls instead of 0"),
        (REASONING, "/calls/0/name", json!("time"), "a call is "),
        (REASONING, "/thinking/0/encrypted", json!("b3RoZXI="), "thinking is "),
    ] {
        let mut expected = read(sample, "expect.json");
        *expected.pointer_mut(&format!("/exchanges/0{member}")).unwrap() = wrong;
        let folder = folder(sample, &read(sample, "json"), &expected);
        assert_difference(&folder, Some(difference));
    }
}

#[test]
fn data_that_is_not_sent_back_fails() {
    for (sent_back, difference) in
        [("ZW5jcnlwdGVk", None), ("b3RoZXI=", Some("/input/0/encrypted_content is not sent back"))]
    {
        let (mut case, mut expected) = (read(REASONING, "json"), read(REASONING, "expect.json"));
        let mut next = case["exchanges"][0].clone();
        let body = json!({"input": [{"type": "reasoning", "encrypted_content": sent_back}]});
        next["request"] = json!({"body": body});
        case["exchanges"].as_array_mut().unwrap().push(next);
        let mut next = expected["exchanges"][0].clone();
        next["replays"] = json!(["/input/0/encrypted_content"]);
        expected["exchanges"].as_array_mut().unwrap().push(next);
        assert_difference(&folder(REASONING, &case, &expected), difference);
    }
}

#[test]
fn a_request_that_violates_its_schema_fails() {
    let message = |required| json!({"type": "object", "required": ["role", required]});
    let request = |required, message| {
        json!({
            "type": "object",
            "required": ["model", required],
            "properties": {"messages": {"items": message}},
        })
    };
    for (schema, difference) in [
        (request("messages", message("content")), None),
        (
            request("absent", message("content")),
            Some(r#"plain: : "absent" is a required property"#),
        ),
        (
            request("messages", message("absent")),
            Some(r#"plain: /messages/0: "absent" is a required property"#),
        ),
    ] {
        let folder = folder(CHAT, &read(CHAT, "json"), &read(CHAT, "expect.json"));
        let schemas = folder.path().join("schemas");
        fs::create_dir(&schemas).unwrap();
        let definitions = json!({"CreateChatCompletionRequest": schema, "CreateResponse": {}});
        let document = json!({"$defs": definitions}).to_string();
        fs::write(schemas.join("openai-requests.json"), document).unwrap();
        assert_difference(&folder, difference);
        if difference.is_none() {
            let text = play(&[folder.path().to_str().unwrap()]).text;
            assert!(text.contains("compared with a schema: 0 differences"), "{text}");
            assert!(!text.contains("of which 0 were"), "{text}");
        }
    }
}

#[test]
fn a_reply_without_an_expectation_fails() {
    let folder = folder(CHAT, &read(CHAT, "json"), &json!({"exchanges": []}));
    assert_difference(&folder, Some("1 replies, but 0 expectations"));
}

#[test]
fn a_folder_without_cases_fails() {
    let folder = tempfile::tempdir().unwrap();
    assert_difference(&folder, Some("has no cases"));
    let played = play(&[SAMPLES, "no such case"]);
    assert!(!played.is_success && played.text.contains("no such case"), "{}", played.text);
}
