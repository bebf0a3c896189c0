//! Tests of line wrapping.

use super::wrapped;

#[test]
fn lines_break_between_words() {
    assert_eq!(wrapped("", 5), [""]);
    assert_eq!(wrapped("one two", 7), ["one two"]);
    assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
    assert_eq!(wrapped("ein übermäßig langes", 9), ["ein", "übermäßig", "langes"]);
}

#[test]
fn a_word_that_is_too_long_has_a_line_of_its_own() {
    assert_eq!(wrapped("see https://example.com/ now", 5), ["see", "https://example.com/", "now"]);
}

#[test]
fn control_characters_are_escaped() {
    assert_eq!(wrapped("small\u{1b}[32m\none", 20), [r"small\u{1b}[32m one"]);
}
