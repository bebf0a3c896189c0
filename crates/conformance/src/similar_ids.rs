//! Ids that a store might confuse with each other.

use helix_agents_core::id::MAX_ID_BYTES;

/// Returns ids that differ only in case, spaces, the form of an accent, a character that is special to a
/// database, or the end of a long text.
pub(crate) fn look_alikes() -> Vec<String> {
    let mut ids: Vec<String> = [
        "case", "Case", "CASE", "sp", " sp", "sp ", "sp  ", "e\u{301}", "\u{e9}", "ß", "ss", "ſs",
        "a", "a/", "a:", "a*", "a?", "a%", "a_", "*", "0", "00", "1", "01", "1.0", "1e0", "null",
        "NULL",
    ]
    .map(str::to_owned)
    .into();
    for length in [16, 32, 63, 64, 127, 128, MAX_ID_BYTES - 1] {
        let long = "x".repeat(length);
        ids.extend([long.clone(), format!("{long}y"), format!("{long}z")]);
    }
    ids
}
