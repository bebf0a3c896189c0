//! Tests of the events of `/sse`.

use serde_json::{Value, json};

use super::*;

fn stored(members: &Value) -> String {
    let mut chunk = json!({
        "seq": 7, "attempt": 2, "agent": "a", "session": "s", "run": "r", "step": 1, "at": 1,
    });
    chunk.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    chunk.to_string()
}

fn decoded(name: &str, data: &str) -> Result<Option<StreamEvent>> {
    decode(Event { name: name.as_bytes(), data: data.as_bytes() })
}

#[test]
fn a_chunk_is_read_as_it_was_stored() {
    for members in [
        json!({ "type": "text_delta", "delta": "Hi" }),
        json!({ "type": "custom", "name": "n", "data": "{\"a\":1}" }),
    ] {
        let Ok(Some(StreamEvent::Chunk(chunk))) = decoded("", &stored(&members)) else { panic!() };
        assert_eq!(serde_json::to_string(&chunk).unwrap(), stored(&members));
    }
}

#[test]
fn a_chunk_of_an_unknown_type_is_skipped_and_one_of_another_form_is_an_error() {
    let event = decoded("", &stored(&json!({ "type": "hologram", "angle": 3 })));
    assert!(matches!(event, Ok(Some(StreamEvent::Skipped(7)))), "{event:?}");
    for data in [&stored(&json!({ "type": "text_delta", "delta": 1 })), "{}", "s3cret", "null"] {
        let error = decoded("", data).unwrap_err();
        assert!(
            error.is(ErrorCode::ServerProtocol) && !error.to_string().contains("s3cret"),
            "{error}"
        );
    }
}

#[test]
fn the_last_event_has_the_state_of_the_session() {
    let end =
        |status: &str| decoded("end", &json!({ "status": status }).to_string()).unwrap().unwrap();
    assert!(matches!(end("paused"), StreamEvent::End(StreamEnd::Paused)));
    assert!(matches!(end("deleted"), StreamEvent::End(StreamEnd::Deleted)));
    assert!(matches!(end("asleep"), StreamEvent::End(StreamEnd::Unknown)));
    assert!(decoded("end", "{}").is_err());
    assert!(decoded("weather", "{}").unwrap().is_none());
}
