//! Valid links and broken links.

use super::links::{Link, check, headings, links};

fn complaints(page: &str, files: &[(&str, &str)]) -> Vec<String> {
    let read = |path: &str| {
        let file = files.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_owned())
    };
    check(page, &read).unwrap()
}

#[test]
fn a_link_to_an_existing_file_or_heading_is_valid() {
    let files = [
        ("docs/a.md", "# A\n\n[b](b.md), [its end](b.md#the-end), [here](#a), [up](../R.md)\n"),
        ("docs/b.md", "# B\n\n## The end!\n"),
        ("R.md", "# R\n\n[away](https://example.com/x.md)\n"),
    ];
    assert_eq!(complaints("docs/a.md", &files), [""; 0]);
    assert_eq!(complaints("R.md", &files), [""; 0]);
}

#[test]
fn a_link_to_a_missing_file_or_heading_is_reported_with_its_line() {
    let files = [("docs/a.md", "# A\n\n[c](c.md)\n[b](b.md#begin)\n"), ("docs/b.md", "# B\n")];
    assert_eq!(
        complaints("docs/a.md", &files),
        [
            "docs/a.md:3: `c.md` names no file",
            "docs/a.md:4: `b.md#begin` names no heading of docs/b.md"
        ]
    );
}

#[test]
fn links_in_code_are_ignored() {
    let text = "`[a](b)` [`c`](d.md)\n```text\n[e](f.md)\n```\n[g](h.md)\n";
    let link = |line, target: &str| Link { line, target: target.to_owned() };
    assert_eq!(links(text), [link(1, "d.md"), link(5, "h.md")]);
}

#[test]
fn anchors_are_those_of_mdbook() {
    let text =
        "# Errors\n## What a crash means to a tool\n```sh\n# no heading\n```\n## `helix.toml`\n";
    assert_eq!(headings(text), ["errors", "what-a-crash-means-to-a-tool", "helixtoml"]);
}
