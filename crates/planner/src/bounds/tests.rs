//! Size limits of results in a prompt.

use serde_json::{Value, json};

use super::{MAX_RESULTS_BYTES, records, text};
use crate::record::ExecutionRecord;

fn record(result: Value) -> ExecutionRecord {
    ExecutionRecord { success: true, result, ..ExecutionRecord::default() }
}

#[test]
fn text_is_cut_between_characters() {
    assert_eq!(text("abc", 3), "abc");
    assert_eq!(text("äöü", 3), "ä… (shortened; the whole text has 6 bytes)");
}

/// Weakness 10: the whole results were put into the prompt twice.
#[test]
fn weakness_10_large_results_are_shortened_individually_and_in_total() {
    let small = record(json!({ "a": 1 }));
    let large = record(json!({ "a": "x".repeat(1000) }));
    let bounded = records(&[small.clone(), large], 100);
    assert_eq!(bounded[0], small);
    assert!(bounded[1].result.as_str().unwrap().starts_with(r#"{"a":"xxx"#));
    let many = vec![record("y".repeat(1_000).into()); 1_000];
    let bounded = records(&many, usize::MAX);
    let total: usize = bounded.iter().map(|record| record.result.to_string().len()).sum();
    assert_eq!(bounded.len(), 1_000);
    assert!(total < MAX_RESULTS_BYTES + 1_000 * 60, "{total}");
}

#[test]
fn errors_are_shortened_as_well() {
    let error = "e".repeat(1_000);
    let bounded = records(&[ExecutionRecord { error, ..ExecutionRecord::default() }], 100);
    assert!(bounded[0].error.ends_with("(shortened; the whole text has 1000 bytes)"));
    assert!(bounded[0].error.len() < 200);
}
