//! Tests of excerpts.

use super::{excerpt, excerpt_of};

#[test]
fn short_text_is_quoted_whole() {
    assert_eq!(excerpt("héllo", 6), "héllo");
    assert_eq!(excerpt_of("héllo", 6), "héllo");
    assert_eq!(excerpt_of("", 0), "");
}

#[test]
fn long_text_is_cut_between_two_characters() {
    assert_eq!(excerpt("héllo", 2), "h…");
    assert_eq!(excerpt_of("héllo", 2), "h…");
    assert_eq!(excerpt_of(format_args!("{}{}", "ab", "cd"), 3), "abc…");
}

#[test]
fn text_after_an_excerpt_is_not_formatted() {
    struct Endless;
    impl std::fmt::Display for Endless {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            loop {
                f.write_str("more ")?;
            }
        }
    }
    assert_eq!(excerpt_of(Endless, 7), "more mo…");
}
