//! `helix resume --from` and `--message`: going back to a checkpoint, and going on with more to say.

use serde_json::{Value, json};

use crate::support::Place;
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

async fn checkpoints(place: &Place, session: &str) -> Vec<u64> {
    let list = place.helix(&["sessions", "checkpoints", session, "--json"]).await.json();
    list.as_array().unwrap().iter().map(|it| it["version"].as_u64().unwrap()).collect()
}

/// A session of an agent file after its first turn.
async fn begun(place: &Place, file: &str, turns: Vec<Turn>) -> (Server, String) {
    let model = model(turns).await;
    place.ask(&model);
    place.write("agent.toml", file);
    place.write("data/there.txt", "");
    let done = place.helix(&["run", "agent.toml", "Begin.", "--json"]).await.json();
    (model, done["session"].as_str().unwrap().to_owned())
}

/// What people and the model said, as the model was told the last time.
fn told(model: &Server) -> Vec<Value> {
    let last = model.requests().pop().unwrap().json();
    last["messages"].as_array().unwrap().iter().map(|it| it["content"].clone()).collect()
}

#[tokio::test]
async fn a_completed_session_is_gone_on_with_from_a_checkpoint() {
    let (place, session) = Place::after_demo().await;
    let demo = place.helix(&["sessions", "show", &session, "--json"]).await.json();
    let before = checkpoints(&place, &session).await;
    let from = before[1].to_string();
    let resumed = place.helix(&["resume", &session, "--from", &from, "--json"]).await.json();
    assert_eq!((&resumed["status"], &resumed["output"]), (&"completed".into(), &demo["output"]));
    let after = checkpoints(&place, &session).await;
    assert_eq!((&after[..2], after.len()), (&before[..2], 5));
    let log = place.helix(&["sessions", "log", "--last"]).await.stdout;
    assert!(log.contains(&format!("rewound to {from}")), "{log}");
}

#[tokio::test]
async fn a_version_that_is_no_checkpoint_is_an_error_that_says_what_lists_them() {
    let (place, session) = Place::after_demo().await;
    let before = place.log(&session).await;
    let checkpoints = checkpoints(&place, &session).await;
    let wrong = (checkpoints[0] + 1).to_string();
    let lists = format!("helix sessions checkpoints {session}");
    for command in [
        &["resume", &session, "--from", &wrong][..],
        &["sessions", "fork", &session, "--at", &wrong],
        &["sessions", "fork", &session, "--step", "99"],
    ] {
        let refused = place.helix(&[command, &["--json"]].concat()).await;
        let error = refused.json_error();
        assert_eq!((refused.code, &error["code"]), (1, &"checkpoint_not_found".into()));
        assert_eq!(error["context"]["list"], lists);
    }
    let told = place.helix(&["resume", &session, "--from", &wrong]).await;
    let nearest = format!("no step was closed at version {wrong}");
    assert!(told.stderr.contains(&nearest) && told.stderr.contains(&lists), "{told:?}");
    assert_eq!(place.log(&session).await, before);
}

#[tokio::test]
async fn checkpoints_tell_what_was_said_in_their_steps() {
    let (place, session) = Place::after_demo().await;
    let text = place.helix(&["sessions", "checkpoints", &session]).await.stdout;
    let first = text.lines().nth(1).unwrap();
    assert!(first.contains(r#"list_bodies{"#) || first.contains(r#"look_up{"#), "{text}");
    let shown = place.helix(&["sessions", "show", &session]).await.stdout;
    assert!(shown.contains(&format!("helix sessions checkpoints {session}")), "{shown}");
    let shown = place.helix(&["sessions", "show", &session, "--json"]).await.json();
    assert_eq!(shown["checkpoints"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn another_message_takes_the_place_of_what_was_said_after_a_checkpoint() {
    let place = Place::new();
    let turns = vec![Turn::Text("One."), Turn::Text("Two.")];
    let (model, session) = begun(&place, TALKER, turns).await;
    place.helix(&["run", "agent.toml", "And then?", "--session", &session, "--json"]).await.json();
    let first = checkpoints(&place, &session).await[0].to_string();
    let back = ["resume", &session, "--from", &first, "--message", "Or else?", "--json"];
    let resumed = place.helix(&back).await.json();
    assert_eq!((&resumed["status"], &resumed["output"]), (&"completed".into(), &"Two.".into()));
    assert_eq!(told(&model)[1..], [json!("Begin."), json!("One."), json!("Or else?")]);
}

#[tokio::test]
async fn going_back_gives_up_what_waits_for_people() {
    let place = Place::new();
    let call = Turn::call("write_file", json!({ "path": "a.txt", "text": "one" }));
    let (_model, session) = begun(&place, WRITER, vec![Turn::Text("One."), call]).await;
    let write = ["run", "agent.toml", "Write.", "--session", &session, "--json"];
    assert_eq!(place.helix(&write).await.code, 3);
    // A message alone does not get past what is waited for.
    let refused = place.helix(&["resume", &session, "--message", "Well?", "--json"]).await;
    assert_eq!((refused.code, &refused.json_error()["code"]), (1, &"suspended".into()));
    let first = checkpoints(&place, &session).await[0].to_string();
    let back = ["resume", &session, "--from", &first, "--message", "Into a file.", "--json"];
    assert_eq!(place.helix(&back).await.code, 3);
    let waiting = place.helix(&["approvals", "list", "--json"]).await.json();
    let calls: Vec<_> = waiting.as_array().unwrap().iter().map(|it| &it["call"]).collect();
    assert_eq!(calls, ["3.0"]);
}

#[tokio::test]
async fn a_message_to_a_completed_session_is_not_passed_over() {
    let (place, session) = Place::after_demo().await;
    let refused = place.helix(&["resume", &session, "--message", "And?", "--json"]).await;
    assert_eq!((refused.code, &refused.json_error()["code"]), (1, &"nothing_to_resume".into()));
    let empty = place.helix(&["resume", &session, "--message", "", "--json"]).await;
    assert_eq!((empty.code, &empty.json_error()["code"]), (2, &"usage".into()));
}
