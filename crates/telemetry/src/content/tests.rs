//! Tests of the environment variable for content.

use super::*;

#[test]
fn content_is_recorded_only_for_the_known_choices() {
    for choice in ["SPAN_ONLY", "span_and_event", " true "] {
        assert!(Content::of_choice(choice).is_recorded(), "{choice}");
    }
    for choice in ["", "EVENT_ONLY", "NO_CONTENT", "false", "yes"] {
        assert!(!Content::of_choice(choice).is_recorded(), "{choice}");
    }
}
