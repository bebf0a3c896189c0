//! Tests of text in one line.

use super::{one_line, shortened};

#[test]
fn a_long_text_becomes_one_short_line() {
    assert_eq!(shortened("one\ntwo", 10), "one two");
    assert_eq!(shortened("größer als erlaubt", 8), "größer…");
}

#[test]
fn control_characters_are_escaped() {
    assert_eq!(one_line("plain größe"), "plain größe");
    assert_eq!(one_line("a\nb\u{1b}[31m\u{202e}"), r"a\nb\u{1b}[31m\u{202e}");
}
