//! Tests of showing and hiding the status line.

use super::*;

const UP: &str = "\u{1b}[A";

fn after(text: &str, width: usize) -> Cursor {
    let mut cursor = Cursor::default();
    cursor.advance(text, width);
    cursor
}

#[test]
fn on_an_empty_line_it_is_drawn_and_erased_in_place() {
    let mut cursor = after("text\n", 20);
    assert_eq!(cursor.show("waiting", "", 20), "\r\u{1b}[Jwaiting\r");
    assert_eq!(cursor.show("waiting 1 s", "", 20), "\r\u{1b}[Jwaiting 1 s\r");
    assert_eq!(cursor.hide(20), "\r\u{1b}[J");
    assert_eq!(cursor.hide(20), "");
}

#[test]
fn below_an_open_line_the_cursor_returns_to_the_text() {
    let mut cursor = after("one\ntwo três", 20);
    assert_eq!(cursor.show("waiting", "", 20), "\n\r\u{1b}[Jwaiting\r");
    assert_eq!(cursor.hide(20), format!("\r\u{1b}[J{UP}\u{1b}[9G"));
    cursor.advance("x", 20);
    assert_eq!(cursor.column, 9);
}

#[test]
fn below_a_full_line_the_text_continues_below() {
    let mut cursor = after("12345678", 8);
    assert_eq!(cursor.show("w", "", 8), "\n\r\u{1b}[Jw\r");
    assert_eq!((cursor.hide(8), cursor.column), ("\r\u{1b}[J".to_owned(), 0));
}

#[test]
fn after_a_resize_the_text_continues_below() {
    let mut cursor = after("12345", 20);
    drop(cursor.show("waiting", "", 20));
    assert_eq!((cursor.hide(10), cursor.column), ("\r\u{1b}[J".to_owned(), 0));
}

#[test]
fn after_a_resize_without_it_nothing_above_is_touched() {
    for width in [40, 10] {
        let mut cursor = after("12345", 20);
        drop(cursor.show("waiting", "", width));
        assert_eq!((cursor.hide(width), cursor.column), ("\r\u{1b}[J".to_owned(), 0), "{width}");
        // Text after that is tracked again.
        cursor.advance("123", width);
        drop(cursor.show("waiting", "", width));
        assert_eq!(cursor.hide(width), format!("\r\u{1b}[J{UP}\u{1b}[4G"));
    }
}

#[test]
fn text_after_a_resize_does_not_hide_it() {
    let mut cursor = after("12345", 20);
    cursor.advance("678", 40);
    drop(cursor.show("waiting", "", 40));
    assert_eq!(cursor.hide(40), "\r\u{1b}[J");
    let mut cursor = after("12345", 20);
    cursor.advance("678\n12", 40);
    drop(cursor.show("waiting", "", 40));
    assert_eq!(cursor.hide(40), format!("\r\u{1b}[J{UP}\u{1b}[3G"));
}

#[test]
fn it_is_cut_to_the_width() {
    let mut cursor = Cursor::default();
    assert_eq!(cursor.show("12345678", "", 5), "\r\u{1b}[J1234\r");
    assert_eq!(cursor.show("日本語", "\u{1b}[2m", 5), "\r\u{1b}[J\u{1b}[2m日本\u{1b}[0m\r");
    assert_eq!(cursor.show("a\nb", "", 5), "\r\u{1b}[Jab\r");
}

#[test]
fn the_column_is_known() {
    for (text, column) in [
        ("", 0),
        ("abc", 3),
        ("abc\n", 0),
        ("1234567890", 10),
        ("12345678901", 1),
        ("a\tb", 9),
        ("\u{1b}[32mab\u{1b}[0m", 2),
        ("日本", 4),
        ("12345678日", 10),
        ("123456789日", 2),
    ] {
        assert_eq!(after(text, 10).column, column, "{text:?}");
    }
}
