//! Tests of write errors on standard output, with `/dev/full`.

use std::fs::File;

use tokio::process::Command;

use crate::support::{CommandResult, ModelServer, Scripted, TestDir};

const WRITE_ERROR: &str = "standard output cannot be written: No space left on device";

/// Runs a command whose standard output cannot be written.
async fn unwritten(mut command: Command, lines: &str) -> CommandResult {
    let full = File::options().write(true).open("/dev/full").unwrap();
    command.stdout(full);
    CommandResult::of_input(command, lines).await
}

/// The session id in the hint on how to resume.
fn session(message: &str) -> &str {
    let (_, behind) = message.split_once("(to resume: helix resume ").unwrap();
    behind.split_once(')').unwrap().0
}

#[tokio::test]
async fn a_run_stops_before_its_store_is_closed_and_can_be_resumed() {
    let dir = TestDir::new();
    let demo = dir.command(&["demo", "--scripted", "--pace", "20"]);
    let done = unwritten(demo, "").await;
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains(WRITE_ERROR), "{done:?}");
    let session = session(&done.stderr);
    // The runtime has released its lease.
    let list = dir.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!((&list[0]["session"], &list[0]["status"]), (&session.into(), &"stopped".into()));
    let resumed = dir.helix(&["resume", session, "--json"]).await;
    assert_eq!(resumed.json()["status"], "completed", "{resumed:?}");
}

#[tokio::test]
async fn with_json_the_error_names_the_session() {
    let dir = TestDir::new();
    let demo = dir.command(&["demo", "--scripted", "--pace", "0", "--json"]);
    let done = unwritten(demo, "").await;
    let message = done.json_error()["message"].clone();
    let message = message.as_str().unwrap();
    assert!(done.code == 1 && message.contains(WRITE_ERROR), "{done:?}");
    let shown = dir.helix(&["resume", session(message), "--json"]).await;
    assert_eq!(shown.json()["status"], "completed");
}

#[tokio::test]
async fn a_chat_ends_with_the_first_turn() {
    let (dir, server) = (
        TestDir::new(),
        ModelServer::start([Scripted::Words("One."), Scripted::Words("Two.")]).await,
    );
    let mut chat = dir.command(&["chat"]);
    chat.envs(server.variables());
    let done = unwritten(chat, "first\nsecond\n").await;
    assert_eq!((done.code, server.requests().len()), (1, 1), "{done:?}");
    assert!(
        done.stderr.contains(WRITE_ERROR) && done.stderr.contains("helix resume ses_"),
        "{done:?}"
    );
    assert_eq!(done.stderr.matches("helix: ").count(), 1, "{done:?}");
}
