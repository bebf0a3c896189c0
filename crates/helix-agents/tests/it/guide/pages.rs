//! The pages: what is listed, and what is in them.

use std::collections::BTreeSet;

use helix_agents::prelude::ProviderRegistry;

use super::{read, repository};

/// What a block of code may be. `rust` is compiled and run, `toml` is read, `console` is carried
/// out by a test of the command line, `sh` is for people, `text` and `json` are what programs print.
const LANGUAGES: [&str; 6] = ["console", "json", "rust", "sh", "text", "toml"];

/// A program that needs a real model is only compiled on a page; its file is run by a test of its
/// own.
const PROGRAM: &str = "rust,no_run";

/// A block of code.
#[derive(Debug)]
struct Block {
    language: String,
    text: String,
}

/// The pages of the book, as `SUMMARY.md` lists them.
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
    for folder in ["", "errors/"] {
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
fn every_block_says_what_it_is_and_rust_is_run() {
    for page in listed() {
        for block in blocks(&read(&format!("docs/src/{page}"))) {
            let Block { language, text } = &block;
            if language == PROGRAM {
                assert_eq!(text, crate::readme::example(), "{page} shows another program");
                continue;
            }
            assert!(
                LANGUAGES.contains(&language.as_str()),
                "{page}: a block is ```{language}; the guide knows {LANGUAGES:?}, and Rust that is \
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
            .any(|it| it.language.starts_with("rust"));
        let is_tested = tests.contains(&format!("\"{page}\","));
        assert!(
            !has_rust || is_tested,
            "{page} has Rust in it: add it to crates/helix-agents/src/guide.rs"
        );
    }
}

#[test]
fn blocks_of_toml_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("helix.toml");
    for page in listed() {
        let blocks = blocks(&read(&format!("docs/src/{page}")));
        for Block { text, .. } in blocks.iter().filter(|it| it.language == "toml") {
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
        assert!(text.starts_with("# "), "{page} begins without a title");
    }
}
