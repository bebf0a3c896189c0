//! Tests of the names of custom events.

use std::collections::BTreeSet;

use super::{RESERVED, shown_name};

#[test]
fn a_custom_event_never_has_a_reserved_name() {
    for name in RESERVED {
        assert_eq!(shown_name(name), format!("custom-{name}"));
    }
    assert_eq!(shown_name("note"), "note");
}

#[test]
fn different_names_stay_different() {
    let names = ["output", "custom-output", "custom-custom-output", "note", "custom-note"];
    let shown: BTreeSet<_> = names.iter().map(|name| shown_name(name)).collect();
    assert_eq!(shown.len(), names.len());
}
