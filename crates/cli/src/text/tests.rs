//! Text for people.

use super::*;

#[test]
fn a_long_text_becomes_one_short_line() {
    assert_eq!(shortened("one\ntwo", 10), "one two");
    assert_eq!(shortened("größer als erlaubt", 8), "größer…");
}

#[test]
fn durations_are_shown_as_people_say_them() {
    let shown = |millis| duration(Duration::from_millis(millis));
    assert_eq!(
        [shown(0), shown(340), shown(4_260), shown(125_000)],
        ["0 ms", "340 ms", "4.2 s", "2 min 05 s"]
    );
}

#[test]
fn columns_are_as_wide_as_their_widest_cell() {
    let rows = [["a".to_owned(), "long one".to_owned()], ["bcd".to_owned(), "x".to_owned()]];
    assert_eq!(table(["N", "TEXT"], &rows), ["N    TEXT", "a    long one", "bcd  x"]);
}
