//! Tests of valid and invalid names.

use std::path::Path;

use super::*;

#[test]
fn a_folder_suggests_a_name() {
    for (folder, name) in [
        ("weather", "weather"),
        ("My Agent", "my-agent"),
        ("Wetter & Fön", "wetter-f-n"),
        ("a/b/snake_case.d", "snake_case-d"),
        ("--x--", "x"),
        ("…", ""),
        ("/", ""),
    ] {
        assert_eq!(of_folder(Path::new(folder)), name, "{folder}");
    }
    assert_eq!(of_folder(Path::new(&"x".repeat(100))).len(), 64);
}

#[test]
fn a_name_that_cargo_takes_is_good() {
    for name in ["weather", "my-agent", "snake_case", "a1", "Weather"] {
        assert_eq!(problem_of(name), None, "{name}");
    }
}

#[test]
fn a_name_that_cargo_refuses_has_a_problem() {
    let long = "x".repeat(65);
    for name in [
        "",
        "1st",
        "-x",
        "_x",
        "a b",
        "a/b",
        "ä",
        "fn",
        "Self",
        "test",
        "core",
        "build",
        "serde",
        "helix-agents",
        &long,
    ] {
        assert!(problem_of(name).is_some(), "{name}");
    }
}
