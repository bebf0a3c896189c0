//! Links that lead somewhere, and links that do not.

use super::links::{Link, check, headings, links};

fn complaints(page: &str, files: &[(&str, &str)]) -> Vec<String> {
    let read = |path: &str| {
        let file = files.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_owned())
    };
    check(page, &read).unwrap()
}

#[test]
fn a_link_to_a_file_or_a_heading_that_is_there_is_fine() {
    let files = [
        ("docs/a.md", "# A\n\n[b](b.md), [its end](b.md#the-end), [here](#a), [up](../R.md)\n"),
        ("docs/b.md", "# B\n\n## The end!\n"),
        ("R.md", "# R\n\n[away](https://example.com/x.md)\n"),
    ];
    assert_eq!(complaints("docs/a.md", &files), [""; 0]);
    assert_eq!(complaints("R.md", &files), [""; 0]);
}

#[test]
fn a_link_to_a_file_or_a_heading_that_is_not_there_is_named_with_its_line() {
    let files = [("docs/a.md", "# A\n\n[c](c.md)\n[b](b.md#begin)\n"), ("docs/b.md", "# B\n")];
    assert_eq!(
        complaints("docs/a.md", &files),
        [
            "docs/a.md:3: `c.md` leads to no file",
            "docs/a.md:4: `b.md#begin` leads to no heading of docs/b.md"
        ]
    );
}

#[test]
fn what_looks_like_a_link_in_code_is_none() {
    let text = "`[a](b)` [`c`](d.md)\n```text\n[e](f.md)\n```\n[g](h.md)\n";
    let link = |line, target: &str| Link { line, target: target.to_owned() };
    assert_eq!(links(text), [link(1, "d.md"), link(5, "h.md")]);
}

#[test]
fn headings_are_named_as_mdbook_names_them() {
    let text =
        "# Errors\n## What a crash means to a tool\n```sh\n# no heading\n```\n## `helix.toml`\n";
    assert_eq!(headings(text), ["errors", "what-a-crash-means-to-a-tool", "helixtoml"]);
}
