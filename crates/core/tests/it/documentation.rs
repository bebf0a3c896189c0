//! What the guide promises about codes.

use helix_agents_core::error::ErrorCode;

#[test]
fn every_code_has_a_section_in_the_guide_and_no_other_has() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/errors.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let sections: Vec<_> =
        guide.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`')).collect();
    let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(sections, codes);
}
