//! Identifiers of other providers.

use super::{short, strict};

#[test]
fn permitted_ids_are_unchanged() {
    for id in ["toolu_01-A", &"x".repeat(64)] {
        assert_eq!(strict(id), id);
        assert_eq!(short(id), id);
    }
}

#[test]
fn other_ids_are_replaced_by_different_permitted_ones() {
    let ids =
        ["1.0", "1_0", "functions.f:0", "functions.f:1", "", "ä", &"x".repeat(65), &"x".repeat(66)];
    let replaced: Vec<String> = ids.iter().map(|id| strict(id).into_owned()).collect();
    for (id, new) in ids.iter().zip(&replaced) {
        assert!((1..=64).contains(&new.len()), "{id}: {new}");
        let is_permitted =
            |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
        assert!(new.chars().all(is_permitted), "{id}: {new}");
        assert_eq!(strict(id), **new, "the same id again");
    }
    let mut different = replaced.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), ids.len(), "{replaced:?}");
}

#[test]
fn a_long_text_is_cut_at_a_character() {
    let text = "ä".repeat(100);
    let cut = short(&text);
    assert!(cut.len() <= 64 && cut.starts_with("ää"), "{cut}");
}
