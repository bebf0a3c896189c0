//! Tests of how replies are parsed.

use super::*;

#[test]
fn only_a_yes_is_a_yes() {
    for yes in ["y", "yes", " Y ", "YES"] {
        assert_eq!(Word::of(yes, true), Some(Word::Yes), "{yes}");
    }
    for unclear in ["", "yep", "y es", "yes please", "1", "ja", "edit it"] {
        assert_eq!(Word::of(unclear, true), None, "{unclear}");
    }
    assert_eq!(Word::of("n", true), Some(Word::No(None)));
    let reason = Some("too dear, for now".to_owned());
    assert_eq!(Word::of("no  too dear, for now", true), Some(Word::No(reason)));
    assert_eq!(Word::of("e", true), Some(Word::Edit));
    assert_eq!(Word::of("e", false), None);
    assert_eq!(Word::of("l", false), Some(Word::Later));
}
