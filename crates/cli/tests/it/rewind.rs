//! Tests of `helix resume --checkpoint` and `--message`: rewinding to a checkpoint and continuing with a message.

use serde_json::{Value, json};

use crate::support::TestDir;
use crate::support::server::{Server, Turn, model};

const TALKER: &str = "name = \"talker\"\nprompt = \"You talk.\"\n";

const WRITER: &str = r#"
name = "writer"
prompt = "You write."
[tools.files]
root = "data"
write = true
requires_approval = true
"#;

async fn checkpoints(dir: &TestDir, session: &str) -> Vec<u64> {
    let list = dir.helix(&["sessions", "checkpoints", session, "--json"]).await.json();
    list.as_array()
        .unwrap()
        .iter()
        .map(|checkpoint| checkpoint["version"].as_u64().unwrap())
        .collect()
}

/// Runs the first turn of a session with an agent file.
async fn start_session(dir: &TestDir, file: &str, turns: Vec<Turn>) -> (Server, String) {
    let model = model(turns).await;
    dir.ask(&model);
    dir.write("agent.toml", file);
    dir.write("data/there.txt", "");
    let done = dir.helix(&["run", "agent.toml", "Begin.", "--json"]).await.json();
    (model, done["session"].as_str().unwrap().to_owned())
}

/// The messages of the last request to the model.
fn messages(model: &Server) -> Vec<Value> {
    let last = model.requests().pop().unwrap().json();
    last["messages"].as_array().unwrap().iter().map(|message| message["content"].clone()).collect()
}

#[tokio::test]
async fn a_completed_session_is_resumed_from_a_checkpoint() {
    let (dir, session) = TestDir::after_demo().await;
    let demo = dir.helix(&["sessions", "show", &session, "--json"]).await.json();
    let before = checkpoints(&dir, &session).await;
    let from = before[1].to_string();
    let resumed = dir.helix(&["resume", &session, "--checkpoint", &from, "--json"]).await.json();
    assert_eq!((&resumed["status"], &resumed["output"]), (&"completed".into(), &demo["output"]));
    let after = checkpoints(&dir, &session).await;
    assert_eq!((&after[..2], after.len()), (&before[..2], 5));
    let log = dir.helix(&["sessions", "log", "--last"]).await.stdout;
    assert!(log.contains(&format!("rewound to {from}")), "{log}");
}

#[tokio::test]
async fn the_error_for_a_missing_checkpoint_has_the_command_that_lists_them() {
    let (dir, session) = TestDir::after_demo().await;
    let before = dir.log(&session).await;
    let checkpoints = checkpoints(&dir, &session).await;
    let wrong = (checkpoints[0] + 1).to_string();
    let lists = format!("helix sessions checkpoints {session}");
    for command in [
        &["resume", &session, "--checkpoint", &wrong][..],
        &["sessions", "fork", &session, "--checkpoint", &wrong],
        &["sessions", "fork", &session, "--step", "99"],
    ] {
        let refused = dir.helix(&[command, &["--json"]].concat()).await;
        let error = refused.json_error();
        assert_eq!((refused.code, &error["code"]), (1, &"checkpoint_not_found".into()));
        assert_eq!(error["context"]["list"], lists);
    }
    let text = dir.helix(&["resume", &session, "--checkpoint", &wrong]).await;
    let nearest = format!("no step was closed at version {wrong}");
    assert!(text.stderr.contains(&nearest) && text.stderr.contains(&lists), "{text:?}");
    assert_eq!(dir.log(&session).await, before);
}

#[tokio::test]
async fn checkpoints_have_the_replies_of_their_steps() {
    let (dir, session) = TestDir::after_demo().await;
    let text = dir.helix(&["sessions", "checkpoints", &session]).await.stdout;
    let first = text.lines().nth(1).unwrap();
    assert!(first.contains(r#"list_bodies{"#) || first.contains(r#"look_up{"#), "{text}");
    let shown = dir.helix(&["sessions", "show", &session]).await.stdout;
    assert!(shown.contains(&format!("helix sessions checkpoints {session}")), "{shown}");
    let shown = dir.helix(&["sessions", "show", &session, "--json"]).await.json();
    assert_eq!(shown["checkpoints"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn a_rewind_with_a_message_replaces_the_later_messages() {
    let dir = TestDir::new();
    let turns = vec![Turn::Text("One."), Turn::Text("Two.")];
    let (model, session) = start_session(&dir, TALKER, turns).await;
    dir.helix(&["run", "agent.toml", "And then?", "--session", &session, "--json"]).await.json();
    let first = checkpoints(&dir, &session).await[0].to_string();
    let back = ["resume", &session, "--checkpoint", &first, "--message", "Or else?", "--json"];
    let resumed = dir.helix(&back).await.json();
    assert_eq!((&resumed["status"], &resumed["output"]), (&"completed".into(), &"Two.".into()));
    assert_eq!(messages(&model)[1..], [json!("Begin."), json!("One."), json!("Or else?")]);
}

#[tokio::test]
async fn a_rewind_discards_pending_calls() {
    let dir = TestDir::new();
    let call = Turn::call("write_file", json!({ "path": "a.txt", "text": "one" }));
    let (_model, session) = start_session(&dir, WRITER, vec![Turn::Text("One."), call]).await;
    let write = ["run", "agent.toml", "Write.", "--session", &session, "--json"];
    assert_eq!(dir.helix(&write).await.code, 3);
    // A message alone does not skip the pending call.
    let refused = dir.helix(&["resume", &session, "--message", "Well?", "--json"]).await;
    assert_eq!((refused.code, &refused.json_error()["code"]), (1, &"suspended".into()));
    let first = checkpoints(&dir, &session).await[0].to_string();
    let back = ["resume", &session, "--checkpoint", &first, "--message", "Into a file.", "--json"];
    assert_eq!(dir.helix(&back).await.code, 3);
    let waiting = dir.helix(&["approvals", "list", "--json"]).await.json();
    let calls: Vec<_> = waiting.as_array().unwrap().iter().map(|call| &call["call"]).collect();
    assert_eq!(calls, ["3.0"]);
}

#[tokio::test]
async fn a_message_to_a_completed_session_is_rejected() {
    let (dir, session) = TestDir::after_demo().await;
    let refused = dir.helix(&["resume", &session, "--message", "And?", "--json"]).await;
    assert_eq!((refused.code, &refused.json_error()["code"]), (1, &"nothing_to_resume".into()));
    let empty = dir.helix(&["resume", &session, "--message", "", "--json"]).await;
    assert_eq!((empty.code, &empty.json_error()["code"]), (2, &"usage".into()));
}
