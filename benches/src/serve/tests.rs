//! The model's replies and rejections.

use super::script::{Route, Say, next, results, route};
use crate::job::{Ending, Work};

const RESULT: &[u8] =
    br#"{"messages":[{"role":"user"},{"role":"tool","tool_call_id":"call_0000000000000000012","content":"12"}]}"#;

#[test]
fn the_last_result_has_the_number_of_results() {
    assert_eq!(results(br#"{"messages":[{"role":"user"}]}"#).unwrap(), 0);
    assert_eq!(results(RESULT).unwrap(), 12);
}

#[test]
fn a_wrong_result_is_refused() {
    let wrong = String::from_utf8_lossy(RESULT).replace("\"12\"", "\"13\"");
    assert_eq!(results(wrong.as_bytes()).unwrap_err().to_string(), "the result of step 12 is 13");
    let failed = String::from_utf8_lossy(RESULT).replace("\"12\"", "\"error\"");
    assert!(results(failed.as_bytes()).is_err());
}

#[test]
fn the_model_calls_the_tool_and_then_submits_the_result() {
    let work = Work::Tools { calls: 3, delay_ms: 0, ending: Ending::Finish };
    assert_eq!(next(work, 0).unwrap(), Say::Add(1));
    assert_eq!(next(work, 2).unwrap(), Say::Add(3));
    assert_eq!(next(work, 3).unwrap(), Say::Object(3, Ending::Finish));
    assert!(next(work, 4).is_err());
}

#[test]
fn paths_are_parsed_as_work() {
    for work in [
        Work::USUAL,
        Work::Tools { calls: 2, delay_ms: 700, ending: Ending::Finish },
        Work::Text { chunks: 10_000, per_write: 1 },
    ] {
        let path = format!("{}/chat/completions", work.path());
        assert_eq!(route(&path), Some(Route::Work(work)));
    }
    assert_eq!(route("/seen"), Some(Route::Seen));
    assert_eq!(route("/v1/chat/completions"), None);
}
