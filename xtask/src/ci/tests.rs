//! The gates and their documentation.

use super::GATES;

const PAGE: &str = include_str!("../../../CONTRIBUTING.md");

#[test]
fn the_page_for_contributors_has_a_row_for_each_gate() {
    let (_, table) = PAGE.split_once("| gate | checks |\n|---|---|\n").unwrap();
    let rows = table.lines().map_while(|line| line.strip_prefix("| `")?.split('`').next());
    let gates: Vec<&str> = GATES.iter().map(|gate| gate.name).collect();
    assert_eq!(rows.collect::<Vec<_>>(), gates);
}
