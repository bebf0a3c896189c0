//! `helix man`.

use std::path::Path;

use tokio::process::Command;

use crate::support::TestDir;

/// The rendered text of a page, if a renderer is installed. Warnings of the renderer fail the test.
async fn rendered(page: &Path) -> Option<String> {
    let programs: [&[&str]; 2] = [
        &["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-rHY=0", "-P-cbou"],
        &["mandoc", "-Tutf8", "-Wwarning,stop"],
    ];
    for program in programs {
        let Some((name, options)) = program.split_first() else { continue };
        let Ok(output) = Command::new(name).args(options).arg(page).output().await else {
            continue;
        };
        assert!(output.status.success() && output.stderr.is_empty(), "{page:?}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        return Some(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    None
}

/// Checks the source of a page.
fn check_source(page: &str) {
    assert!(page.contains("\n.TH ") || page.starts_with(".TH "), "{page}");
    for line in page.lines().filter(|line| line.starts_with('.')) {
        let name = line.split([' ', '"']).next().unwrap();
        let known =
            [".ie", ".el", ".TH", ".SH", ".PP", ".TP", ".RS", ".RE", ".IP", ".br", ".nf", ".fi"];
        assert!(known.contains(&name), "unknown macro: `{line}`");
    }
}

/// The subcommands in the `--help` output of a command.
async fn subcommands(dir: &TestDir, path: &[&str]) -> Vec<String> {
    let help = dir.helix(&[path, &["--help"]].concat()).await.stdout;
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let names = list.lines().take_while(|line| !line.is_empty());
    // Names are indented by two spaces, continuation lines by more.
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[tokio::test]
async fn every_command_has_a_page() {
    let dir = TestDir::new();
    let done = dir.helix(&["man", "--dir", "pages/man1"]).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));

    let mut pages = vec![("helix.1".to_owned(), "NAME".to_owned())];
    for command in subcommands(&dir, &[]).await {
        pages.push((format!("helix-{command}.1"), format!("helix {command}")));
        for below in subcommands(&dir, &[&command]).await {
            pages.push((format!("helix-{command}-{below}.1"), format!("helix {command} {below}")));
        }
    }
    assert!(pages.len() > 10, "{pages:?}");
    assert_eq!(done.stdout.lines().count(), pages.len(), "{}", done.stdout);
    for (file, shown) in pages {
        let path = dir.path("pages/man1").join(&file);
        let source = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("no {file}"));
        check_source(&source);
        if let Some(text) = rendered(&path).await {
            for word in ["NAME", "SYNOPSIS", &shown, "HELIX_DB", "EXIT STATUS"] {
                assert!(text.contains(word), "{file} does not contain `{word}`:\n{text}");
            }
        }
    }
}

#[tokio::test]
async fn the_page_of_helix_goes_to_standard_output() {
    let dir = TestDir::new();
    let done = dir.helix(&["man"]).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));
    check_source(&done.stdout);
    let json = dir.helix(&["man", "--json"]).await.json();
    assert_eq!(json["page"], done.stdout);
}

#[tokio::test]
async fn a_folder_that_cannot_be_created_is_reported() {
    let dir = TestDir::new();
    std::fs::write(dir.path("file"), "").unwrap();
    let done = dir.helix(&["man", "--dir", "file/pages", "--json"]).await;
    assert_eq!(done.code, 1);
    let error = done.json_error();
    assert!(error["message"].as_str().unwrap().contains("file/pages"), "{error}");
}
