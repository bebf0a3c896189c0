//! Imports of small crates.

use std::collections::BTreeMap;

use super::*;

/// Returns the imports of a crate with these files as `from -> to` lines.
fn imports(files: &[(&str, &str)]) -> Vec<String> {
    let own = Crate::read("c/src", files.iter().copied()).unwrap();
    let lines = own.imports().into_iter().flat_map(|(from, targets)| {
        targets.into_iter().map(move |to| format!("{from} -> {to}").replace("c/src/", ""))
    });
    lines.collect()
}

#[test]
fn a_path_leads_to_the_file_of_its_module() {
    let root = ("c/src/lib.rs", "mod a; mod b;");
    let b = ("c/src/b.rs", "pub struct B;");
    for text in [
        "use crate::b::B;",
        "use super::b::B;",
        "use crate::{b::{B}};",
        "use crate::b;",
        "use crate::b::*;\nfn f() -> B { B }",
        "fn f() -> crate::b::B { todo() }",
        "fn f() { vec![crate::b::B] }",
        "mod inline { use crate::b::B; }",
    ] {
        assert_eq!(imports(&[root, b, ("c/src/a.rs", text)]), ["a.rs -> b.rs"], "{text}");
    }
}

#[test]
fn other_crates_and_own_items_are_no_imports() {
    let root = ("c/src/lib.rs", "mod a; mod b;");
    let b = ("c/src/b.rs", "");
    for text in [
        "use std::b::B;",
        "use ::b::B;",
        "fn f() { Self::b(); other::b::B }",
        "mod inline { use super::C; }\nstruct C;",
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "// crate::b::B",
        "const TEXT: &str = \"crate::b::B\";",
    ] {
        assert_eq!(imports(&[root, b, ("c/src/a.rs", text)]), [""; 0], "{text}");
    }
}

#[test]
fn a_reexported_name_leads_to_its_definition() {
    let files = [
        ("c/src/lib.rs", "mod a; mod b; pub use b::Kept as Renamed;"),
        (
            "c/src/a.rs",
            "use crate::b::Kept; use crate::Renamed; fn f() { crate::b::Starred::new() }",
        ),
        ("c/src/b.rs", "mod inner; mod star; pub use inner::Kept; pub use star::*;"),
        ("c/src/b/inner.rs", "pub struct Kept;"),
        ("c/src/b/star.rs", "pub struct Starred;"),
    ];
    let expected = [
        "a.rs -> b/inner.rs",
        "a.rs -> b/star.rs",
        "b.rs -> b/inner.rs",
        "b.rs -> b/star.rs",
        "lib.rs -> b/inner.rs",
    ];
    assert_eq!(imports(&files), expected);
}

#[test]
fn an_imported_module_leads_on() {
    let files = [
        ("c/src/lib.rs", "mod a; mod b; mod d;"),
        ("c/src/a.rs", "use crate::b; fn f() { b::inner::g(); b::h() }"),
        ("c/src/b.rs", "pub mod inner; pub use crate::d::h;"),
        ("c/src/b/inner.rs", "pub fn g() {}"),
        ("c/src/d.rs", "pub fn h() {}"),
    ];
    assert_eq!(
        imports(&files),
        ["a.rs -> b.rs", "a.rs -> b/inner.rs", "a.rs -> d.rs", "b.rs -> d.rs"]
    );
}

#[test]
fn tests_and_programs_have_no_module() {
    assert_eq!(module_of("/lib.rs"), Some(Vec::new()));
    assert_eq!(module_of("/a/b.rs"), Some(vec!["a".to_owned(), "b".to_owned()]));
    for path in ["/a/tests.rs", "/tests/a.rs", "/bin/a.rs", "/a.txt"] {
        assert_eq!(module_of(path), None, "{path}");
    }
}

#[test]
fn a_file_that_is_not_rust_is_an_error() {
    let error = Crate::read("c/src", [("c/src/lib.rs", "fn f( {")].into_iter()).err().unwrap();
    assert!(error.to_string().starts_with("c/src/lib.rs: not Rust"), "{error}");
    let none: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    assert_eq!(
        Crate::read("c/src", [("d/src/lib.rs", "fn f( {")].into_iter()).unwrap().imports(),
        none
    );
}
