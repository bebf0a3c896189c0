//! Tests of the rules of language.

use super::{List, check, extract};

fn list(extra: &str) -> List {
    let text = format!(
        "[denied]\n\"whoever\" = \"the caller\"\n\"told of\" = \"notified of\"\n[unchecked]\n\"old/\" = \"recorded\"\n{extra}"
    );
    toml::from_str(&text).unwrap()
}

fn complaints(extra: &str, path: &str, text: &str) -> Vec<String> {
    check(&list(extra), [(path, text)].into_iter())
}

#[test]
fn denied_words_are_found_in_comments_messages_and_pages() {
    for (path, text) in [
        ("a.rs", "// Whoever asks.\n"),
        ("a.rs", "/// The caller, whoever it is.\nfn a() {}\n"),
        ("a.rs", "    fail(\"the client was told of it\");\n"),
        ("a.md", "Hooks are told of results.\n"),
        ("a.toml", "a = 1 # for whoever\n"),
    ] {
        let found = complaints("", path, text);
        assert_eq!(found.len(), 1, "{path}: {text}: {found:?}");
    }
}

#[test]
fn code_and_other_words_are_left_alone() {
    for (path, text) in [
        ("a.rs", "let whoever = 1;\n"),
        ("a.rs", "/// The `whoever` field.\nfn a() {}\n"),
        ("a.rs", "/// An example.\n/// ```\n/// // whoever\n/// ```\nfn a() {}\n"),
        ("a.md", "```text\nwhoever\n```\n"),
        ("a.md", "whoeverybody\n"),
        ("old/a.md", "whoever\n"),
        ("a.json", "whoever\n"),
    ] {
        assert_eq!(complaints("", path, text), Vec::<String>::new(), "{path}: {text}");
    }
}

#[test]
fn one_word_is_no_documentation() {
    assert_eq!(complaints("", "a.rs", "/// Name.\nname: String,\n").len(), 1);
    assert_eq!(complaints("", "a.rs", "/// The name.\nname: String,\n").len(), 0);
    assert_eq!(complaints("", "a.rs", "/// Done.\n///\n/// It is over.\nfn a() {}\n").len(), 0);
}

#[test]
fn few_doc_comments_open_with_an_interrogative() {
    let text = "/// What it is.\nfn a() {}\n";
    assert_eq!(complaints("", "a.rs", text).len(), 2);
    let many = "/// The name.\nfn a() {}\n".repeat(100) + text;
    assert_eq!(complaints("", "a.rs", &many).len(), 0);
}

#[test]
fn an_exception_is_for_one_line_and_must_be_used() {
    let exception = "[exceptions]\n\"a.md: whoever\" = \"a quote\"\n";
    assert_eq!(complaints(exception, "a.md", "whoever\n").len(), 0);
    assert_eq!(complaints(exception, "a.md", "none\n").len(), 1);
    assert_eq!(complaints(exception, "a.md", "whoever\nwhoever else\n").len(), 1);
}

#[test]
fn lines_are_numbered_from_one() {
    let lines = extract::lines("a.rs", "\n// One.\n");
    assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), [2]);
}
