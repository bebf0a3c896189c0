//! Tests of text for a terminal.

use super::*;

#[test]
fn line_ends_tabs_and_our_colours_pass() {
    let text = format!("one\n\ttwo {GREEN}three{RESET} größer ✓");
    assert_eq!(clean(&text, true), text);
}

#[test]
fn escape_sequences_become_visible() {
    assert_eq!(clean("\u{1b}]0;title\u{7}", true), "␛]0;title␇");
    assert_eq!(clean("\u{1b}[2J\u{1b}[5n\u{8}\u{7f}", true), "␛[2J␛[5n␈␡");
    // The same sequences with single-character introducers.
    assert_eq!(clean("\u{9b}2J\u{9d}0;x\u{9c}", true), "\u{fffd}2J\u{fffd}0;x\u{fffd}");
}

#[test]
fn nothing_is_overwritten_by_a_carriage_return() {
    assert_eq!(clean("rm -rf /\recho hi\r\n", true), "rm -rf /echo hi\n");
}

#[test]
fn untrusted_text_has_no_colours() {
    assert_eq!(plain("\u{1b}[32mcompleted\u{1b}[0m\n"), "␛[32mcompleted␛[0m\n");
    assert_eq!(clean("\u{1b}[32mx\u{1b}[0m", false), "␛[32mx␛[0m");
}

#[test]
fn direction_changes_are_replaced() {
    let text = "a\u{202e}b\u{2066}c\u{2069}d\u{200f}e\u{200e}f\u{202a}";
    assert_eq!(plain(text), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}f\u{fffd}");
    assert_eq!(plain("👩\u{200d}👧 שלום"), "👩\u{200d}👧 שלום");
}
