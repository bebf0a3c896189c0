//! Tests of behaviour that all commands have in common: exit codes, errors and output streams.

use std::process::Stdio;

use crate::support::TestDir;

#[tokio::test]
async fn an_invalid_command_line_exits_with_2() {
    let dir = TestDir::new();
    for args in [
        &[][..],
        &["dance"],
        &["demo", "--scripted", "--model", "a:b"],
        &["demo", "--pace", "fast"],
        &["run"],
        &["resume"],
        &["resume", "--last", "ses_1"],
        &["sessions"],
        &["sessions", "delete"],
        &["approvals"],
        &["approvals", "approve"],
        &["approvals", "deny", "1.0", "--last", "--session", "ses_1"],
        &["abort"],
        &["sessions", "list", "--limit", "0"],
        &["tail"],
    ] {
        let done = dir.helix(args).await;
        assert_eq!((done.code, &*done.stdout), (2, ""), "{args:?}");
        assert!(done.stderr.contains("--help"), "{args:?}: {}", done.stderr);
    }
    assert!(!dir.path("helix.db").exists());
}

#[tokio::test]
async fn with_json_a_wrong_command_line_is_an_object_too() {
    let done = TestDir::new().helix(&["resume", "--json"]).await;
    assert_eq!((done.code, &done.json_error()["code"]), (2, &"usage".into()));
}

#[tokio::test]
async fn help_names_commands_variables_and_exit_codes() {
    let done = TestDir::new().helix(&["--help"]).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));
    for word in
        ["demo", "run", "resume", "tail", "schema", "HELIX_DB", "OPENAI_API_KEY", "3 suspended"]
    {
        assert!(done.stdout.contains(word), "{word}");
    }
}

#[tokio::test]
async fn read_commands_create_no_database() {
    let dir = TestDir::new();
    for args in [
        &["resume", "--last"][..],
        &["run", "agent.toml", "Hi", "--session", "ses_1"],
        &["tail", "--last"],
        &["sessions", "list"],
        &["sessions", "show", "--last"],
        &["sessions", "log", "--last"],
        &["sessions", "checkpoints", "--last"],
        &["sessions", "export", "--last"],
        &["sessions", "delete", "ses_1"],
        &["approvals", "list"],
        &["approvals", "show", "ses_1#1.0"],
        &["approvals", "approve", "ses_1#1.0"],
        &["interrupt", "ses_1"],
        &["abort", "--last"],
    ] {
        let done = dir.helix(&[args, &["--db", "nowhere.db", "--json"]].concat()).await;
        let error = done.json_error();
        assert_eq!((done.code, &error["code"]), (1, &"input_invalid".into()), "{args:?}");
        assert_eq!(error["context"]["db"], "nowhere.db");
        assert!(!dir.path("nowhere.db").exists(), "{args:?}");
    }
}

#[tokio::test]
async fn the_database_of_another_program_is_rejected_and_not_changed() {
    let (dir, _) = TestDir::after_demo().await;
    let mut bytes = std::fs::read(dir.path("helix.db")).unwrap();
    // The application id in SQLite's file format.
    bytes[68..72].copy_from_slice(&[0, 0, 0, 42]);
    let file = dir.path("foreign.db");
    std::fs::write(&file, &bytes).unwrap();
    for args in [&["sessions", "list"][..], &["demo", "--scripted"]] {
        let done = dir.helix(&[args, &["--db", "foreign.db", "--json"]].concat()).await;
        assert_eq!((done.code, &done.json_error()["code"]), (1, &"store_foreign".into()));
    }
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_rejected_and_not_changed() {
    let dir = TestDir::new();
    let text = "dear diary\n".repeat(200);
    std::fs::write(dir.path("diary.txt"), &text).unwrap();
    let done = dir.helix(&["demo", "--scripted", "--db", "diary.txt", "--json"]).await;
    assert_eq!((done.code, &done.json_error()["kind"]), (1, &"corrupt".into()));
    assert_eq!(std::fs::read_to_string(dir.path("diary.txt")).unwrap(), text);
}

#[tokio::test]
async fn the_environment_names_the_database() {
    let (dir, session) = TestDir::after_demo().await;
    std::fs::rename(dir.path("helix.db"), dir.path("other.db")).unwrap();
    let mut list = dir.command(&["sessions", "list"]);
    let output = list.env("HELIX_DB", "other.db").output().await.unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains(&session));
}

#[tokio::test]
async fn a_closed_pipe_is_not_an_error() {
    let (dir, _) = TestDir::after_demo().await;
    for args in [&["sessions", "log", "--last"][..], &["tail", "--last"], &["--help"]] {
        let mut command = dir.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().await.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{args:?}");
    }
}

#[tokio::test]
async fn a_demo_with_closed_output_runs_to_completion() {
    let dir = TestDir::new();
    let mut command = dir.command(&["demo", "--scripted", "--pace", "0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    let list = dir.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!(list[0]["status"], "completed");
}

#[tokio::test]
async fn there_is_no_colour_without_a_terminal() {
    let (dir, _) = TestDir::after_demo().await;
    for args in [&["sessions", "log", "--last"][..], &["tail", "--last"], &["resume", "--last"]] {
        let done = dir.helix(args).await;
        assert!(!done.stdout.contains('\u{1b}'), "{args:?}");
    }
}
