//! Tests of the agent files of recorded sessions.

use std::fs;

use super::*;

const TEXT: &str = "name = 'reader'\nprompt = 'Read.'";

#[test]
fn a_session_without_an_agent_file_records_none() {
    assert_eq!(RecordedFile::of_tags(&BTreeMap::new()), None);
}

#[test]
fn the_same_file_has_no_differences() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reader.toml");
    fs::write(&path, TEXT).unwrap();
    let tags = AgentFile::read(&path).unwrap().session_tags(Some(Path::new("/data")));
    let recorded = RecordedFile::of_tags(&tags).unwrap();
    assert_eq!(recorded.files(), Some(Path::new("/data")));
    let file = recorded.read(None).unwrap();
    assert_eq!(recorded.differences(&file), [] as [&str; 0]);
    file.check_name("reader").unwrap();
    let error = file.check_name("writer").unwrap_err();
    assert_eq!(error.code(), ErrorCode::AgentMismatch);
}

#[test]
fn another_file_with_another_text_differs_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("reader.toml"), folder.path().join("copy.toml"));
    fs::write(&path, TEXT).unwrap();
    fs::write(&copy, format!("{TEXT}\nmodel = 'a:b'")).unwrap();
    let tags = AgentFile::read(&path).unwrap().session_tags(None);
    let recorded = RecordedFile::of_tags(&tags).unwrap();
    assert_eq!(recorded.files(), None);
    let differences = recorded.differences(&recorded.read(Some(&copy)).unwrap());
    let [created, changed] = &differences[..] else { panic!("{differences:?}") };
    assert!(created.contains("with which the session was created"), "{created}");
    assert!(changed.contains("has changed since"), "{changed}");
}

#[test]
fn a_file_that_was_removed_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reader.toml");
    fs::write(&path, TEXT).unwrap();
    let tags = AgentFile::read(&path).unwrap().session_tags(None);
    fs::remove_file(&path).unwrap();
    let error = RecordedFile::of_tags(&tags).unwrap().read(None).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InputInvalid);
    assert!(error.message().contains("does not exist any more"), "{error}");
}
