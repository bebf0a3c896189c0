//! Valid links and broken links, and the dashboard for Grafana.

use std::collections::BTreeSet;

use serde_json::Value;

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

/// The columns of a dashboard.
const COLUMNS: u64 = 24;

#[test]
fn the_dashboard_has_panels_that_do_not_overlap() {
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../docs/grafana/helix-agents.json")).unwrap();
    assert!(dashboard["schemaVersion"].is_u64());
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "two panels have the id of {panel}");
        let [x, y, width, height] =
            ["x", "y", "w", "h"].map(|member| panel["gridPos"][member].as_u64().unwrap());
        assert!(x + width <= COLUMNS, "{panel}");
        for cell in (x..x + width).flat_map(|x| (y..y + height).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{panel} overlaps another panel");
        }
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}");
            assert!(target["expr"].as_str().is_some_and(|query| !query.is_empty()), "{panel}");
        }
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let names: Vec<_> = variables.iter().map(|variable| &variable["name"]).collect();
    assert_eq!(names, ["datasource", "agent"]);
}
