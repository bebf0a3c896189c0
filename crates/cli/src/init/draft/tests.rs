//! Tests that all files are written or none.

use std::fs;
use std::path::Path;

use helix_agents::error::ErrorCode;
use tempfile::TempDir;

use super::Draft;

fn draft(folder: &Path, files: &[(&str, &str)]) -> Draft {
    let mut draft = Draft::default();
    for (name, text) in files {
        draft.add(folder.join(name), (*text).to_owned());
    }
    draft
}

/// All files and folders below a folder, with the text of the files.
fn tree(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.push((format!("{name}/"), String::new()));
            let below = tree(&path).into_iter();
            found.extend(below.map(|(below, text)| (format!("{name}/{below}"), text)));
        } else {
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[track_caller]
fn check_refused(folder: &Path, files: &[(&str, &str)], force: bool, words: &str) {
    let before = tree(folder);
    let error = draft(folder, files).write(force).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InputInvalid);
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!(tree(folder), before, "{error}");
}

#[test]
fn files_are_written_with_the_folders_that_they_need() {
    let folder = TempDir::new().unwrap();
    let written =
        draft(folder.path(), &[("a", "1"), ("b/c/d", "2"), ("b/e", "3")]).write(false).unwrap();
    assert_eq!(written.len(), 3);
    let tree = tree(folder.path());
    let names: Vec<&str> = tree.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["a", "b/", "b/c/", "b/c/d", "b/e"]);
}

#[test]
fn a_new_file_has_default_permissions() {
    let folder = TempDir::new().unwrap();
    draft(folder.path(), &[("a", "1")]).write(false).unwrap();
    fs::write(folder.path().join("b"), "").unwrap();
    let permissions = |name| fs::metadata(folder.path().join(name)).unwrap().permissions();
    assert_eq!(permissions("a"), permissions("b"));
}

#[test]
fn existing_files_are_replaced_only_with_force() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("b"), "mine").unwrap();
    fs::write(folder.path().join("other"), "mine").unwrap();
    let files = [("a", "1"), ("b", "2")];
    check_refused(folder.path(), &files, false, "--force replaces it; path=");
    draft(folder.path(), &files).write(true).unwrap();
    let expected = [("a", "1"), ("b", "2"), ("other", "mine")];
    assert_eq!(tree(folder.path()), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[test]
fn identical_files_are_not_written_again() {
    let folder = TempDir::new().unwrap();
    let files = [("a", "1"), ("b", "2")];
    draft(folder.path(), &files).write(false).unwrap();
    assert_eq!(draft(folder.path(), &files).write(false).unwrap(), [] as [&Path; 0]);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_not_replaced() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    check_refused(folder.path(), &[("a", "1"), ("b", "2")], true, "exists and is not a file");
}

#[test]
fn a_broken_link_is_not_replaced() {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("b")).unwrap();
    let error = draft(folder.path(), &[("a", "1"), ("b", "2")]).write(true).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InputInvalid);
    assert!(!folder.path().join("a").exists());
}

#[test]
fn a_file_in_the_place_of_a_folder_leaves_everything_as_it_was() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("src"), "mine").unwrap();
    let files = [("new/folder/a", "1"), ("src/main.rs", "2")];
    check_refused(folder.path(), &files, true, "cannot be written");
}

#[test]
fn a_failure_at_the_last_file_undoes_the_others() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("old"), "mine").unwrap();
    // The file `new/b` is at the path of the folder of `new/b/c`.
    let files = [("new/a", "1"), ("old", "2"), ("new/b", "3"), ("new/b/c", "4")];
    check_refused(folder.path(), &files, true, "cannot be written");
    let files = [("new/a", "1"), ("old", "2"), ("last", "3")];
    let before = tree(folder.path());
    let mut changes = super::Changes::default();
    draft(folder.path(), &files).try_write(&mut changes).unwrap();
    assert_ne!(tree(folder.path()), before);
    changes.undo();
    assert_eq!(tree(folder.path()), before);
}
