//! Tests of the helpers for text output.

use super::*;

#[test]
fn an_argument_is_quoted_only_if_a_shell_would_take_it_apart() {
    let arguments = ["helix.db", "out/a-b_c.db", "", "my db", "it's", "$HOME", "a;b", "größe"];
    let shown = arguments.map(|argument| quoted(argument).into_owned());
    assert_eq!(
        shown,
        ["helix.db", "out/a-b_c.db", "''", "'my db'", r"'it'\''s'", "'$HOME'", "'a;b'", "größe"]
    );
}

#[test]
fn sizes_are_shown_in_the_unit_that_fits() {
    let sizes = [0, 1, 999, 1_000, 98_304, 1_950_000, 59_500_000_000].map(bytes);
    assert_eq!(sizes, ["0 bytes", "1 byte", "999 bytes", "1.0 kB", "98.3 kB", "1.9 MB", "59.5 GB"]);
}

#[test]
fn columns_are_as_wide_as_their_widest_cell() {
    let rows = [["a".to_owned(), "long one".to_owned()], ["bcd".to_owned(), "x".to_owned()]];
    assert_eq!(table(["N", "TEXT"], &rows), ["N    TEXT", "a    long one", "bcd  x"]);
}

#[test]
fn a_cell_stays_in_its_row() {
    let rows = [["a\nb".to_owned(), "\u{1b}[31mred\u{202e}".to_owned()]];
    let line = r"a\nb  \u{1b}[31mred\u{202e}";
    assert_eq!(table(["N", "TEXT"], &rows), ["N     TEXT", line]);
}
