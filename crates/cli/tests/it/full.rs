//! Standard output that cannot be written: `/dev/full`.

use std::fs::File;

use tokio::process::Command;

use crate::support::{Done, ModelServer, Place, Says};

const TOLD: &str = "standard output cannot be written: No space left on device";

/// What comes of a command whose output nobody can write.
async fn unwritten(mut command: Command, lines: &str) -> Done {
    let full = File::options().write(true).open("/dev/full").unwrap();
    command.stdout(full);
    Done::of_input(command, lines).await
}

/// The session that can be resumed by what was told.
fn session(told: &str) -> &str {
    let (_, behind) = told.split_once("(to go on: helix resume ").unwrap();
    behind.split_once(')').unwrap().0
}

#[tokio::test]
async fn a_run_stops_before_its_store_is_closed_and_can_be_resumed() {
    let place = Place::new();
    let demo = place.command(&["demo", "--scripted", "--pace", "20"]);
    let done = unwritten(demo, "").await;
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains(TOLD), "{done:?}");
    let session = session(&done.stderr);
    // The runtime has given up its lease.
    let list = place.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!((&list[0]["session"], &list[0]["standing"]), (&session.into(), &"stopped".into()));
    let resumed = place.helix(&["resume", session, "--json"]).await;
    assert_eq!(resumed.json()["status"], "completed", "{resumed:?}");
}

#[tokio::test]
async fn with_json_the_error_names_the_session_whose_result_nobody_has_read() {
    let place = Place::new();
    let demo = place.command(&["demo", "--scripted", "--pace", "0", "--json"]);
    let done = unwritten(demo, "").await;
    let message = done.json_error()["message"].clone();
    let message = message.as_str().unwrap();
    assert!(done.code == 1 && message.contains(TOLD), "{done:?}");
    let shown = place.helix(&["resume", session(message), "--json"]).await;
    assert_eq!(shown.json()["status"], "completed");
}

#[tokio::test]
async fn a_chat_ends_with_the_first_turn() {
    let (place, server) =
        (Place::new(), ModelServer::start([Says::Words("One."), Says::Words("Two.")]).await);
    let mut chat = place.command(&["chat"]);
    chat.envs(server.variables());
    let done = unwritten(chat, "first\nsecond\n").await;
    assert_eq!((done.code, server.requests().len()), (1, 1), "{done:?}");
    assert!(done.stderr.contains(TOLD) && done.stderr.contains("helix resume ses_"), "{done:?}");
    assert_eq!(done.stderr.matches("helix: ").count(), 1, "{done:?}");
}
