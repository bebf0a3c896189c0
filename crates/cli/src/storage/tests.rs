//! Tests of how databases are shown.

use std::path::Path;

use super::shown;

#[test]
fn a_database_is_shown_with_its_place_and_without_its_password() {
    for (url, expected) in [
        ("helix.db", "helix.db"),
        ("postgres://u:p@h:5432/d", "postgres://u@h:5432/d"),
        ("postgres://h/d?schema=walk", "postgres://h/d?schema=walk"),
        ("postgres://u:p@h/d?password=p&schema=walk&user=x", "postgres://u@h/d?schema=walk"),
        ("postgres://h/d?pooler=transaction&a=b", "postgres://h/d?pooler=transaction"),
        ("redis://:p@h:6379?prefix=a&prefix=b", "redis://@h:6379?prefix=a&prefix=b"),
        ("redis://h", "redis://h"),
    ] {
        assert_eq!(shown(Path::new(url)), expected);
    }
}
