//! Stale index entries.

use super::is_stale;

#[test]
fn an_entry_is_stale_only_if_its_append_cannot_be_written_any_more() {
    assert!(!is_stale("5\0a", "5\0a", 9), "the head names this append");
    assert!(!is_stale("5\0a", "3\0b", 4), "the append may still be in progress");
    assert!(is_stale("5\0a", "3\0b", 5), "another append has this version");
    assert!(is_stale("5\0a", "", 7));
    assert!(!is_stale("damaged", "", 7), "the tag is unreadable");
}
