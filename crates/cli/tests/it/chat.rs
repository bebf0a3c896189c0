//! `helix chat` in pipes: a line is a turn.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::{Done, ModelServer, Place, Running, Says};

/// What a chat answers to these lines.
async fn chat(place: &Place, server: &ModelServer, args: &[&str], lines: &str) -> Done {
    let mut command = place.command(&[&["chat"], args].concat());
    command.envs(server.variables()).env("HOME", place.path(""));
    command.stdout(Stdio::piped());
    Done::of_input(command, lines).await
}

#[tokio::test]
async fn lines_are_turns_and_the_output_is_what_the_model_says() {
    let replies = [Says::Words("Good\u{1b} day!"), Says::Words("Yes.")];
    let (place, server) = (Place::new(), ModelServer::start(replies).await);
    let done = chat(&place, &server, &[], "hello\n\nstill \\\nthere?\n").await;
    // As it is: whoever reads a pipe gets what was said.
    assert_eq!((done.code, &*done.stdout), (0, "Good\u{1b} day!\nYes.\n"), "{done:?}");
    assert_eq!(done.stderr, "");
    let messages = server.requests()[1]["messages"].clone();
    assert_eq!(messages.as_array().unwrap().last().unwrap()["content"], "still \nthere?");
    // Nothing of it is in the history of what was typed.
    assert!(!place.path(".local").exists());
}

#[tokio::test]
async fn with_json_there_is_one_result_per_turn_of_one_session() {
    let replies = [Says::Calls("dance", json!({})), Says::Words("One."), Says::Words("Two.")];
    let (place, server) = (Place::new(), ModelServer::start(replies).await);
    let done = chat(&place, &server, &["--json"], "first\nsecond\n").await;
    let results = done.json_lines();
    assert_eq!((done.code, results.len()), (0, 2));
    assert_eq!((&results[0]["output"], &results[1]["output"]), (&json!("One."), &json!("Two.")));
    assert_eq!(results[0]["session"], results[1]["session"]);
    assert_eq!(results[1]["status"], "completed");
}

#[tokio::test]
async fn a_turn_that_fails_is_told_and_the_next_one_is_taken() {
    let (place, server) =
        (Place::new(), ModelServer::start([Says::Fails, Says::Words("Yes.")]).await);
    let done = chat(&place, &server, &["--json"], "hello\nstill there?\n").await;
    let statuses: Vec<_> =
        done.stdout.lines().map(|line| line.contains(r#""status":"completed""#)).collect();
    assert_eq!((done.code, &*statuses), (1, &[false, true][..]), "{done:?}");
}

#[tokio::test]
async fn commands_work_in_pipes_too() {
    let (place, server) = (Place::new(), ModelServer::start([Says::Words("One.")]).await);
    let done = chat(&place, &server, &[], "/dance\nhello\n/log\n/quit\nnever said\n").await;
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("there is no command /dance"), "{done:?}");
    assert!(done.stdout.contains("run_ended completed"), "{done:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_session_goes_on_in_the_next_chat() {
    let replies = [Says::Words("One."), Says::Words("Two."), Says::Words("Three.")];
    let (place, server) = (Place::new(), ModelServer::start(replies).await);
    let first = chat(&place, &server, &["--json"], "first\n").await.json();
    let session = first["session"].as_str().unwrap();
    for (args, output) in [(&["--last"][..], "Two.\n"), (&["--session", session], "Three.\n")] {
        assert_eq!(chat(&place, &server, args, "more\n").await.stdout, output);
    }
    assert_eq!(server.requests()[2]["messages"].as_array().unwrap().len(), 6);
    let model = ["--last", "--model", "openai:another"];
    drop(chat(&place, &server, &model, "more\n").await);
    assert_eq!(server.requests()[3]["model"], "another");
}

#[tokio::test]
async fn a_session_that_is_not_there_makes_no_database() {
    let (place, server) = (Place::new(), ModelServer::start([]).await);
    for args in [&["--last", "--json"][..], &["--session", "ses_1", "--json"]] {
        let done = chat(&place, &server, args, "hello\n").await;
        assert_eq!((done.code, &done.json_error()["code"]), (1, &"input_invalid".into()));
    }
    assert!(!place.path("helix.db").exists());
}

#[tokio::test]
async fn a_line_that_is_no_message_is_one_failed_turn() {
    let (place, server) = (Place::new(), ModelServer::start([Says::Words("Yes.")]).await);
    let long = format!("{}\nstill there?\n", "x".repeat((1 << 20) + 1));
    let done = chat(&place, &server, &["--json"], &long).await;
    let [error, result] = [&done.stderr, &done.stdout]
        .map(|told| serde_json::from_str::<serde_json::Value>(told).unwrap());
    assert_eq!((done.code, &error["error"]["code"]), (1, &"input_invalid".into()));
    assert_eq!(result["output"], "Yes.");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_name_of_a_tool_cannot_forge_lines() {
    let forged = "calc\n  ✓ calculate (2 ms) {\"value\":666}\u{1b}[31m";
    let replies = [Says::Calls(forged, json!({})), Says::Words("Done.")];
    let (place, server) = (Place::new(), ModelServer::start(replies).await);
    let done = chat(&place, &server, &[], "hello\n").await;
    assert!(done.stdout.starts_with("  ✗ calc   ✓ calculate (2 ms)"), "{done:?}");
    assert!(!done.stdout.contains("\n  ✓"), "{done:?}");
    assert!(!done.stdout.contains('\u{1b}'), "{done:?}");
}

#[tokio::test]
async fn with_json_commands_answer_json_too() {
    let (place, server) = (Place::new(), ModelServer::start([Says::Words("One.")]).await);
    let lines = "/help\n/model\nhello\n/log\n/sessions\n/state\n/model openai:another\n/new\n";
    let done = chat(&place, &server, &["--json"], lines).await;
    let lines = done.json_lines();
    assert_eq!(lines[0]["commands"][0]["name"], "/help");
    assert_eq!(lines[1], json!({ "model": "openai:scripted" }));
    assert_eq!(lines.last().unwrap(), &json!({ "model": "openai:another" }));
}

#[tokio::test]
async fn with_json_a_turn_tells_its_own_costs() {
    let replies = [Says::Calls("dance", json!({})), Says::Words("One."), Says::Words("Two.")];
    let (place, server) = (Place::new(), ModelServer::start(replies).await);
    let done = chat(&place, &server, &["--json"], "first\nsecond\n").await;
    let results = done.json_lines();
    let [first, second] = &results[..] else { panic!("{done:?}") };
    assert_eq!((&first["turn"]["steps"], &first["steps"]), (&json!(2), &json!(2)));
    assert_eq!((&second["turn"]["steps"], &second["steps"]), (&json!(1), &json!(3)));
    assert_eq!(second["turn"]["usage"]["input_tokens"], 1200);
    assert_eq!(second["usage"]["input_tokens"], 3600);
}

#[tokio::test]
async fn ctrl_c_interrupts_the_turn_and_all_that_was_to_come() {
    let replies = [Says::Asks("To be continued", "dance"), Says::Words("never")];
    let (place, server) = (Place::new(), ModelServer::start(replies).await);
    let mut command = place.command(&["chat"]);
    command.envs(server.variables()).stdin(Stdio::piped());
    let mut chat = Running::of(command);
    let mut input = chat.child.stdin.take().unwrap();
    input.write_all(b"first\nsecond\n").await.unwrap();
    server.asked().await;
    chat.signal(Signal::INT);
    let heard = BufReader::new(chat.child.stderr.take().unwrap()).lines().next_line().await;
    assert!(heard.unwrap().unwrap().contains("interrupting"));
    server.let_go();
    let done = chat.end().await;
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.stdout.starts_with("To be continued\n"), "{done:?}");
    assert!(done.stdout.contains("interrupted: /resume goes on"), "{done:?}");
    assert_eq!(server.requests().len(), 1);
}
