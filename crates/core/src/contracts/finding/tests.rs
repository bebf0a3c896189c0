//! Tests of findings.

use serde_json::json;

use super::Finding;
use crate::error::{Error, ErrorCode};

#[test]
fn an_error_is_a_problem_with_its_code() {
    let error = Error::new(ErrorCode::StoreNewer, "a newer version wrote the file");
    let finding = Finding::from_error(&error, "upgrade this program").with_subject("agents.db");
    assert!(finding.is_problem());
    assert_eq!(
        serde_json::to_value(&finding).unwrap(),
        json!({
            "code": "store_newer",
            "severity": "problem",
            "message": "agents.db: a newer version wrote the file",
            "remedy": "upgrade this program",
        })
    );
}

#[test]
fn advice_is_no_problem() {
    let advice = Finding::advice("disk_nearly_full", "the disk is nearly full", "free some space");
    assert!(!advice.is_problem());
    assert_eq!(serde_json::to_value(&advice).unwrap()["severity"], "advice");
}
