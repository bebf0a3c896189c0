//! The pages of the guide: they are listed, and their blocks of code are checked.

use std::collections::BTreeSet;

use helix_agents::prelude::ProviderRegistry;

use super::{read, repository};

/// The languages of code blocks. `rust` is compiled and run, `toml` is parsed, `console` is run by
/// a test of the command line, `sh` is for the reader only, and `text` and `json` are program
/// output.
const LANGUAGES: [&str; 9] =
    ["console", "js", "json", "jsx", "nginx", "rust", "sh", "text", "toml"];

/// A program that needs a real model is only compiled on a page; a separate test runs its file.
const PROGRAM: &str = "rust,no_run";

/// A block of code on a page.
#[derive(Debug)]
struct Block {
    language: String,
    text: String,
}

/// Returns the pages of the book that `SUMMARY.md` lists.
fn listed() -> BTreeSet<String> {
    let summary = read("docs/src/SUMMARY.md");
    let links = summary.split("](").skip(1);
    let mut pages = BTreeSet::new();
    for page in links.filter_map(|rest| Some(rest.split_once(')')?.0)) {
        assert!(pages.insert(page.to_owned()), "SUMMARY.md lists {page} twice");
    }
    pages
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        let fence = line.trim_start().strip_prefix("```");
        open = match (open, fence) {
            (None, None) => None,
            (None, Some(language)) => {
                Some(Block { language: language.trim().to_owned(), text: String::new() })
            }
            (Some(block), Some(_)) => {
                blocks.push(block);
                None
            }
            (Some(mut block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
                Some(block)
            }
        };
    }
    assert!(open.is_none(), "a block of code has no end");
    blocks
}

#[test]
fn the_summary_lists_every_page_and_no_other() {
    let mut found = BTreeSet::new();
    for folder in ["", "errors/", "providers/"] {
        for entry in std::fs::read_dir(repository("docs/src").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") && name != "SUMMARY.md" {
                found.insert(format!("{folder}{name}"));
            }
        }
    }
    assert_eq!(listed(), found);
}

#[test]
fn every_block_has_a_language_and_rust_is_run() {
    for page in listed() {
        for block in blocks(&read(&format!("docs/src/{page}"))) {
            let Block { language, text } = &block;
            if language == PROGRAM {
                assert_eq!(text, crate::readme::example(), "{page} shows a different program");
                continue;
            }
            assert!(
                LANGUAGES.contains(&language.as_str()),
                "{page}: a block is ```{language}; the guide allows {LANGUAGES:?}, and Rust that is \
                 not run gets stale:\n{text}"
            );
            let is_rust = |line: &str| {
                let starts = ["use ", "fn ", "async fn ", "let ", "pub ", "impl ", "#[", "struct "];
                starts.iter().any(|start| line.trim_start().starts_with(start))
            };
            let hidden = matches!(language.as_str(), "text" | "json") && text.lines().any(is_rust);
            assert!(!hidden, "{page}: a block of {language} looks like Rust:\n{text}");
        }
    }
}

#[test]
fn pages_with_rust_are_documentation_tests() {
    let tests = read("crates/helix-agents/src/guide.rs");
    for page in listed() {
        let has_rust = blocks(&read(&format!("docs/src/{page}")))
            .iter()
            .any(|block| block.language.starts_with("rust"));
        let is_tested = tests.contains(&format!("\"{page}\","));
        assert!(
            !has_rust || is_tested,
            "{page} contains Rust: add it to crates/helix-agents/src/guide.rs"
        );
    }
}

#[test]
fn blocks_of_toml_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("helix.toml");
    for page in listed() {
        let blocks = blocks(&read(&format!("docs/src/{page}")));
        for Block { text, .. } in blocks.iter().filter(|block| block.language == "toml") {
            toml::from_str::<toml::Table>(text)
                .unwrap_or_else(|error| panic!("{page}: {error}\n{text}"));
            if text.starts_with("# helix.toml") {
                std::fs::write(&file, text).unwrap();
                let read = ProviderRegistry::from_lookup(&|_| None, Some(&file));
                assert!(read.is_ok(), "{page}: {read:?}\n{text}");
            }
        }
    }
}

#[test]
fn every_page_has_a_title() {
    for page in listed() {
        let text = read(&format!("docs/src/{page}"));
        assert!(text.starts_with("# "), "{page} has no title");
    }
}
