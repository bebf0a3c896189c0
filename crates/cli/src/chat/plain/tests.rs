//! Tests of entries from a pipe.

use super::*;

fn entries(text: &[u8]) -> Vec<String> {
    let mut input = text;
    std::iter::from_fn(|| read(&mut input).unwrap()).collect()
}

#[test]
fn a_line_is_an_entry() {
    assert_eq!(entries(b"one\n\nthree"), ["one", "", "three"]);
    assert!(entries(b"").is_empty());
}

#[test]
fn a_backslash_continues_the_line() {
    assert_eq!(entries(b"one\\\ntwo\\\nthree\nfour\n"), ["one\ntwo\nthree", "four"]);
    assert_eq!(entries(b"two \\\\\nthree\n"), ["two \\\\", "three"]);
    assert_eq!(entries(b"end\\\n"), ["end\\"]);
}

#[test]
fn invalid_lines_are_rejected() {
    let long = "x".repeat(MAX_MESSAGE_BYTES + 1);
    assert!(read(&mut long.as_bytes()).unwrap_err().to_string().contains("maximum length"));
    assert!(read(&mut &b"\xff\n"[..]).unwrap_err().to_string().contains("UTF-8"));
    let lines = format!("{long}{long}\nnext\n");
    let mut input = lines.as_bytes();
    assert!(read(&mut input).is_err());
    assert_eq!(read(&mut input).unwrap().unwrap(), "next");
    let mut input = &b"\xff\nnext\n"[..];
    assert!(read(&mut input).is_err());
    assert_eq!(read(&mut input).unwrap().unwrap(), "next");
    let longest = format!("{}\n", "x".repeat(MAX_MESSAGE_BYTES - 1));
    assert_eq!(read(&mut longest.as_bytes()).unwrap().unwrap().len(), MAX_MESSAGE_BYTES - 1);
}
