//! The matrix of a few reports.

use super::{Report, matrix};

fn report(json: &str) -> Report {
    serde_json::from_str(json).unwrap()
}

#[test]
fn a_point_is_a_row_and_a_runtime_on_a_store_a_column() {
    let reports = [
        report(
            r#"{"runtime":"local","store":"sqlite","scenario":"research","fault_points":[
                {"name":"after_append","ok":true},{"name":"before_append","ok":true}]}"#,
        ),
        report(
            r#"{"runtime":"local","store":"memory","scenario":"research","fault_points":[
                {"name":"after_append","ok":false}]}"#,
        ),
        report(
            r#"{"runtime":"local","store":"memory","scenario":"research","fault_points":[
                {"name":"after_append","ok":true}]}"#,
        ),
    ];
    let expected = "\
research
                 local/memory  local/sqlite
  after_append   FAILED        ok
  before_append  -             ok

3 of 4 kills survived";
    assert_eq!(matrix::render(&reports), expected);
}
