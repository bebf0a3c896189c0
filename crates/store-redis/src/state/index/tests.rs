//! Which entries of indexes may go.

use super::is_stale;

#[test]
fn an_entry_goes_only_if_its_append_cannot_come_any_more() {
    assert!(!is_stale("5\0a", "5\0a", 9), "it is what the head tells of");
    assert!(!is_stale("5\0a", "3\0b", 4), "it may be on its way");
    assert!(is_stale("5\0a", "3\0b", 5), "another append came first");
    assert!(is_stale("5\0a", "", 7));
    assert!(!is_stale("damaged", "", 7), "nobody knows what it is");
}
