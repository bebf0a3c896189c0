//! Ids that a store might take for each other.

use helix_agents_core::id::MAX_ID_BYTES;

/// Ids that differ in case, in space, in the form of an accent, in a sign that means something to a
/// database, or only at the end of a long text.
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
