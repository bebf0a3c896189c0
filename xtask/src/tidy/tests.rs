//! One violation of each rule.

use super::text::{MACHINE_PATHS, MARKERS, REGISTRY_HOSTS};
use super::{File, architecture, manifests, text};

const NONE: [&str; 0] = [];

fn check(path: &str, text: &str) -> Vec<String> {
    text::check(&File { path: path.to_owned(), text: text.to_owned() })
}

#[track_caller]
fn assert_complains(path: &str, text: &str, expected: &str) {
    let complaints = check(path, text);
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints.iter().all(|complaint| complaint.contains(expected)), "{complaints:?}");
}

#[test]
fn a_correct_file_has_no_complaints() {
    assert_eq!(check("src/lib.rs", "//! A file.\n\n#[cfg(test)]\nmod tests;\n"), NONE);
    assert_eq!(check("src/lib.rs", "#![doc = include_str!(\"../README.md\")]\n"), NONE);
}

#[test]
fn a_rust_file_starts_with_its_purpose() {
    assert_complains("src/lib.rs", "fn f() {}\n", "src/lib.rs: does not start with `//!`");
    assert_eq!(check("tests-macros/tests/ui/wrong.rs", "fn f() {}\n"), NONE);
    assert_eq!(check("crates/macros/build.rs", "fn main() {}\n"), NONE);
}

#[test]
fn a_long_file_is_reported_with_its_length() {
    let long = format!("//! Long.\n{}", "fn f() {}\n".repeat(600));
    assert_complains("src/lib.rs", &long, "src/lib.rs: has 601 lines");
    assert_eq!(check("notes.md", &long), NONE);
}

#[test]
fn tests_are_in_their_own_file_and_run() {
    assert_complains("src/lib.rs", "//! A.\nmod tests {\n}\n", "src/lib.rs:2: inline tests");
    let ignored = concat!("//! A.\n    #[ig", "nore]\n");
    assert_complains("src/lib.rs", ignored, "src/lib.rs:2: an ignored test");
}

#[test]
fn trailing_spaces_and_a_missing_final_newline_are_reported() {
    assert_complains("a.md", "one \ntwo\n", "a.md:1: trailing space");
    assert_complains("a.md", "one", "a.md: does not end with a newline");
}

#[test]
fn markers_of_unfinished_work_are_found_as_words() {
    for marker in MARKERS {
        assert_complains("a.md", &format!("so: {marker}: later\n"), marker);
        assert_eq!(check("a.md", &format!("mktemp /tmp/a{marker}b\n")), NONE);
    }
}

#[test]
fn machine_paths_are_found_only_as_absolute_paths() {
    for path in MACHINE_PATHS {
        assert_complains("a.md", &format!("cd {path}/main\n"), "path of one machine");
        assert_complains("a.md", &format!("HOME={path}\n"), "path of one machine");
        assert_eq!(check("a.md", &format!("see https://host{path}/x and {path}flow\n")), NONE);
    }
}

#[test]
fn registries_are_named_only_in_the_lock_file() {
    for host in REGISTRY_HOSTS {
        let text = format!("see https://{host}/x\n");
        assert_complains("a.md", &text, "names a package registry");
        assert_eq!(check("Cargo.lock", &text), NONE);
    }
}

#[test]
fn an_external_dependency_has_a_reason() {
    let manifest = "\
[workspace.dependencies]
# Ours.
helix-agents-core = { path = \"crates/core\" }
good = \"1\"     # needed
bad = { version = \"1\", features = [\"#x\"] }
empty = \"1\" #

[profile.dev]
debug = 1
";
    assert_eq!(
        manifests::check_workspace(manifest),
        [
            "Cargo.toml:5: bad has no `# reason` at the end of its line",
            "Cargo.toml:6: empty has no `# reason` at the end of its line",
        ]
    );
}

#[test]
fn a_crate_takes_its_lints_from_the_workspace() {
    let check = |manifest| manifests::check_member("a", manifest).unwrap();
    assert_eq!(check("[lints]\nworkspace = true\n"), None);
    assert!(check("[package]\nname = \"a\"\n").is_some());
    assert!(check("[lints]\nworkspace = false\n").is_some());
}

#[test]
fn architecture_names_exactly_the_existing_crates() {
    let crates = ["helix-agents-core", "helix-agents-store-memory", "helix-agents", "xtask"];
    let good = "`helix-agents` ties; **helix-agents-core** decides; *helix-agents-store-\\**: bytes; `xtask`.";
    assert_eq!(architecture::check(good, &crates), NONE);
    assert_eq!(architecture::check("**helix-agents-*** `xtask`, helix-agents", &crates), NONE);
    assert_eq!(
        architecture::check("helix-agents-core, helix-agents-gone.", &crates),
        [
            "ARCHITECTURE.md: does not name helix-agents",
            "ARCHITECTURE.md: does not name helix-agents-store-memory",
            "ARCHITECTURE.md: does not name xtask",
            "ARCHITECTURE.md: names helix-agents-gone, which does not exist",
        ]
    );
}
