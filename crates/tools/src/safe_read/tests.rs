//! Tests that only small regular files are read, without blocking.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::{read_text, read_text_below};

fn problem(result: std::io::Result<String>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_file_is_read_up_to_the_limit_and_not_beyond() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    fs::write(&file, "12345").unwrap();
    assert_eq!(read_text(&file, 5).unwrap(), "12345");
    assert_eq!(problem(read_text(&file, 4)), "it is larger than 4 bytes");
}

#[test]
fn a_hundred_megabytes_are_refused_unread() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.toml");
    // A sparse file.
    fs::File::create(&file).unwrap().set_len(100 << 20).unwrap();
    assert_eq!(problem(read_text(&file, 1000)), "it is larger than 1000 bytes");
}

#[test]
fn folders_devices_pipes_and_sockets_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let not_a_file = "it is a pipe, a device or a socket";
    assert_eq!(problem(read_text(&pipe, 10)), not_a_file);
    assert_eq!(problem(read_text(Path::new("/dev/zero"), 10)), not_a_file);
    assert_eq!(problem(read_text(folder.path(), 10)), "it is a folder");
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    assert!(read_text(&socket, 10).is_err());
}

#[test]
fn invalid_utf8_is_reported_with_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    fs::write(&file, b"abc\xff").unwrap();
    assert_eq!(problem(read_text(&file, 10)), "it is not valid UTF-8 (at byte 3)");
}

#[test]
fn no_path_leads_out_of_a_folder() {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(outer.path().join("secret.txt"), "secret").unwrap();
    fs::write(inner.join("open.txt"), "open").unwrap();
    std::os::unix::fs::symlink("../secret.txt", inner.join("link.txt")).unwrap();
    std::os::unix::fs::symlink("loop.txt", inner.join("loop.txt")).unwrap();
    let dir = Dir::open_ambient_dir(&inner, ambient_authority()).unwrap();
    assert_eq!(read_text_below(&dir, Path::new("open.txt"), 10).unwrap(), "open");
    assert_eq!(read_text_below(&dir, Path::new("../inner/./open.txt"), 10).ok(), None);
    let absolute = outer.path().join("secret.txt");
    for path in [Path::new("../secret.txt"), Path::new("link.txt"), &absolute, "loop.txt".as_ref()]
    {
        assert!(read_text_below(&dir, path, 10).is_err(), "{}", path.display());
    }
}
