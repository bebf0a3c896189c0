//! `helix man`.

use std::path::Path;

use tokio::process::Command;

use crate::support::Place;

/// The words of the page as a reader sees them, if this machine can show one. What is wrong with a page fails the
/// test.
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

/// What holds of the source of any page.
fn check_source(page: &str) {
    assert!(page.contains("\n.TH ") || page.starts_with(".TH "), "{page}");
    for line in page.lines().filter(|line| line.starts_with('.')) {
        let name = line.split([' ', '"']).next().unwrap();
        let known =
            [".ie", ".el", ".TH", ".SH", ".PP", ".TP", ".RS", ".RE", ".IP", ".br", ".nf", ".fi"];
        assert!(known.contains(&name), "what is `{line}`?");
    }
}

/// The commands that `--help` of this command names.
async fn subcommands(place: &Place, path: &[&str]) -> Vec<String> {
    let help = place.helix(&[path, &["--help"]].concat()).await.stdout;
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let names = list.lines().take_while(|line| !line.is_empty());
    // Names stand at the left, what goes on in the next line does not.
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[tokio::test]
async fn every_command_has_a_page_that_can_be_read() {
    let place = Place::new();
    let done = place.helix(&["man", "--dir", "pages/man1"]).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));

    let mut pages = vec![("helix.1".to_owned(), "NAME".to_owned())];
    for command in subcommands(&place, &[]).await {
        pages.push((format!("helix-{command}.1"), format!("helix {command}")));
        for below in subcommands(&place, &[&command]).await {
            pages.push((format!("helix-{command}-{below}.1"), format!("helix {command} {below}")));
        }
    }
    assert!(pages.len() > 10, "{pages:?}");
    assert_eq!(done.stdout.lines().count(), pages.len(), "{}", done.stdout);
    for (file, shown) in pages {
        let path = place.path("pages/man1").join(&file);
        let source = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("no {file}"));
        check_source(&source);
        if let Some(text) = rendered(&path).await {
            for word in ["NAME", "SYNOPSIS", &shown, "HELIX_DB", "EXIT STATUS"] {
                assert!(text.contains(word), "{file} lacks `{word}`:\n{text}");
            }
        }
    }
}

#[tokio::test]
async fn the_page_of_helix_goes_to_standard_output() {
    let place = Place::new();
    let done = place.helix(&["man"]).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));
    check_source(&done.stdout);
    let json = place.helix(&["man", "--json"]).await.json();
    assert_eq!(json["page"], done.stdout);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let place = Place::new();
    std::fs::write(place.path("file"), "").unwrap();
    let done = place.helix(&["man", "--dir", "file/pages", "--json"]).await;
    assert_eq!(done.code, 1);
    let error = done.json_error();
    assert!(error["message"].as_str().unwrap().contains("file/pages"), "{error}");
}
