//! Tests of listing, reading and writing below a folder, and of rejected paths.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use helix_agents_core::tool::ToolError;
use tempfile::TempDir;

use super::list::list;
use super::read::read;
use super::write::write;
use super::{SandboxDir, tidied};

/// A folder next to a secret file, with links to the secret and circular links.
struct Fixture {
    outer: TempDir,
    sandbox: SandboxDir,
}

impl Fixture {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir_all(inner.join("sub/deep")).unwrap();
        fs::write(outer.path().join("secret.txt"), "secret").unwrap();
        fs::write(inner.join("a.txt"), "hällo wörld").unwrap();
        fs::write(inner.join("sub/b.txt"), "b").unwrap();
        fs::write(inner.join("image.png"), b"\x89PNG\x0d\x0a\x00\x01").unwrap();
        symlink("../secret.txt", inner.join("out.txt")).unwrap();
        symlink("..", inner.join("up")).unwrap();
        symlink("../..", inner.join("sub/top")).unwrap();
        symlink(".", inner.join("sub/deep/again")).unwrap();
        symlink("a.txt", inner.join("within.txt")).unwrap();
        let root = Dir::open_ambient_dir(&inner, ambient_authority()).unwrap();
        Self { outer, sandbox: SandboxDir { root: Arc::new(root), max_bytes: 100 } }
    }

    fn inner(&self, path: &str) -> std::path::PathBuf {
        self.outer.path().join("inner").join(path)
    }
}

#[track_caller]
fn message_of<T: std::fmt::Debug>(result: Result<T, ToolError>) -> String {
    result.unwrap_err().message().to_owned()
}

fn paths(fixture: &Fixture, path: &str, recursive: bool) -> Vec<String> {
    let listed = list(&fixture.sandbox, path, recursive).unwrap();
    let line = |entry: super::list::Entry| match entry.bytes {
        Some(bytes) => format!("{} {} {bytes}", entry.kind, entry.path),
        None => format!("{} {}", entry.kind, entry.path),
    };
    listed.entries.into_iter().map(line).collect()
}

#[test]
fn a_folder_is_listed_in_order_and_links_are_not_followed() {
    let fixture = Fixture::new();
    let flat = [
        "file a.txt 13",
        "file image.png 8",
        "link out.txt",
        "folder sub",
        "link up",
        "link within.txt",
    ];
    assert_eq!(paths(&fixture, ".", false), flat);
    assert_eq!(paths(&fixture, tidied("/"), false), flat);
    let sub = ["file sub/b.txt 1", "folder sub/deep", "link sub/top", "link sub/deep/again"];
    assert_eq!(paths(&fixture, "sub", true), sub);
    let all: Vec<_> = flat.into_iter().chain(sub).collect();
    assert_eq!(paths(&fixture, ".", true), all);
}

#[test]
fn the_length_of_a_list_is_limited() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.inner("many")).unwrap();
    for number in 0..600 {
        fs::write(fixture.inner(&format!("many/{number:03}")), "").unwrap();
    }
    let listed = list(&fixture.sandbox, "many", false).unwrap();
    assert_eq!((listed.entries.len(), listed.more), (500, true));
    assert_eq!(listed.entries[0].path, "many/000");
}

#[test]
fn a_file_is_read_in_parts_that_join() {
    let fixture = Fixture::new();
    let whole = read(&fixture.sandbox, "a.txt", 0, 100).unwrap();
    assert_eq!((&*whole.text, whole.bytes, whole.next_offset), ("hällo wörld", 13, None));
    assert_eq!(read(&fixture.sandbox, "within.txt", 0, 100).unwrap(), whole);
    for limit in 4..=13 {
        let (mut text, mut offset) = (String::new(), Some(0));
        while let Some(from) = offset {
            let part = read(&fixture.sandbox, "a.txt", from, limit).unwrap();
            text.push_str(&part.text);
            offset = part.next_offset;
        }
        assert_eq!(text, "hällo wörld", "{limit}");
    }
    // From within the first `ä`.
    assert_eq!(read(&fixture.sandbox, "a.txt", 2, 100).unwrap().text, "llo wörld");
    assert!(
        message_of(read(&fixture.sandbox, "a.txt", 14, 100))
            .contains("13 bytes; `offset` is beyond")
    );
}

#[test]
fn files_without_text_are_rejected() {
    let fixture = Fixture::new();
    assert!(
        message_of(read(&fixture.sandbox, "image.png", 0, 100)).contains("not a UTF-8 text file")
    );
    assert!(message_of(read(&fixture.sandbox, "sub", 0, 100)).contains("it is a folder"));
    let made = std::process::Command::new("mkfifo").arg(fixture.inner("pipe")).status().unwrap();
    assert!(made.success());
    assert!(message_of(read(&fixture.sandbox, "pipe", 0, 100)).contains("it is a pipe"));
}

#[test]
fn paths_out_of_the_folder_are_rejected() {
    let fixture = Fixture::new();
    let absolute = fixture.outer.path().join("secret.txt").to_string_lossy().into_owned();
    for path in [
        "../secret.txt",
        "sub/../../secret.txt",
        "out.txt",
        "up/secret.txt",
        "sub/top/secret.txt",
        &absolute,
        "/etc/passwd",
    ] {
        let message = message_of(read(&fixture.sandbox, path, 0, 100));
        assert!(message.contains("is not allowed: a path must be below"), "{path}: {message}");
        assert!(
            write(&fixture.sandbox, path, "taken", "1").is_err() || path == "out.txt",
            "{path}"
        );
    }
    for path in ["..", "up", "sub/top", "/etc"] {
        assert!(list(&fixture.sandbox, path, true).is_err(), "{path}");
    }
    assert_eq!(fs::read_to_string(fixture.outer.path().join("secret.txt")).unwrap(), "secret");
    assert!(message_of(read(&fixture.sandbox, "nothing.txt", 0, 100)).contains("list_files shows"));
}

#[test]
fn a_file_is_written_as_a_whole() {
    let fixture = Fixture::new();
    let written = write(&fixture.sandbox, "new/folder/c.txt", "text", "1.0").unwrap();
    assert_eq!((&*written.path, written.bytes), ("new/folder/c.txt", 4));
    write(&fixture.sandbox, "new/folder/c.txt", "other", "2.0").unwrap();
    assert_eq!(fs::read_to_string(fixture.inner("new/folder/c.txt")).unwrap(), "other");
    assert_eq!(
        fs::read_dir(fixture.inner("new/folder")).unwrap().count(),
        1,
        "no temporary file is left over"
    );
}

#[test]
fn write_errors_are_reported() {
    let fixture = Fixture::new();
    let message = message_of(write(&fixture.sandbox, "d.txt", &"x".repeat(101), "1"));
    assert!(message.contains("101 bytes, but only 100 are allowed"), "{message}");
    assert!(message_of(write(&fixture.sandbox, "sub", "x", "1")).contains("is not a file"));
    assert!(message_of(write(&fixture.sandbox, ".", "x", "1")).contains("does not name a file"));
    assert!(message_of(write(&fixture.sandbox, "within.txt", "x", "1")).contains("is not a file"));
    assert!(!Path::new(&fixture.inner("d.txt")).exists());
}

#[test]
fn a_file_keeps_its_permissions() {
    let fixture = Fixture::new();
    for mode in [0o600, 0o755, 0o444] {
        let path = fixture.inner("kept.txt");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        write(&fixture.sandbox, "kept.txt", "new", "1").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode, "{mode:o}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn long_names_and_names_with_spaces_work() {
    let fixture = Fixture::new();
    let call_key = "0197f2a4-0000-7000-8000-000000000000-call_0123456789";
    for name in ["n".repeat(255), " blank.txt ".to_owned()] {
        write(&fixture.sandbox, tidied(&name), "text", call_key).unwrap();
        assert_eq!(read(&fixture.sandbox, tidied(&name), 0, 100).unwrap().text, "text", "{name}");
        assert!(paths(&fixture, ".", false).contains(&format!("file {name} 4")), "{name}");
    }
}
