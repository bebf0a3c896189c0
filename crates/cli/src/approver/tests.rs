//! Tests of how replies are parsed.

use super::*;

#[test]
fn only_a_yes_is_a_yes() {
    for yes in ["y", "yes", " Y ", "YES"] {
        assert_eq!(Choice::of(yes, true), Some(Choice::Yes), "{yes}");
    }
    for unclear in ["", "yep", "y es", "yes please", "1", "ja", "edit it"] {
        assert_eq!(Choice::of(unclear, true), None, "{unclear}");
    }
    assert_eq!(Choice::of("n", true), Some(Choice::No(None)));
    let reason = Some("too dear, for now".to_owned());
    assert_eq!(Choice::of("no  too dear, for now", true), Some(Choice::No(reason)));
    assert_eq!(Choice::of("e", true), Some(Choice::Edit));
    assert_eq!(Choice::of("e", false), None);
    assert_eq!(Choice::of("l", false), Some(Choice::Later));
}
