//! Tests of `helix chat` in pipes: each line is a turn.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::{CommandResult, ModelServer, Running, Scripted, TestDir};

/// Runs a chat with these lines as input.
async fn chat(dir: &TestDir, server: &ModelServer, args: &[&str], lines: &str) -> CommandResult {
    let mut command = dir.command(&[&["chat"], args].concat());
    command.envs(server.variables()).env("HOME", dir.path(""));
    command.stdout(Stdio::piped());
    CommandResult::of_input(command, lines).await
}

#[tokio::test]
async fn lines_are_turns_and_the_output_is_the_model_text() {
    let replies = [Scripted::Words("Good\u{1b} day!"), Scripted::Words("Yes.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let done = chat(&dir, &server, &[], "hello\n\nstill \\\nthere?\n").await;
    // Output to a pipe is not sanitized.
    assert_eq!((done.code, &*done.stdout), (0, "Good\u{1b} day!\nYes.\n"), "{done:?}");
    assert_eq!(done.stderr, "");
    let messages = server.requests()[1]["messages"].clone();
    assert_eq!(messages.as_array().unwrap().last().unwrap()["content"], "still \nthere?");
    // Piped input is not added to the history.
    assert!(!dir.path(".local").exists());
}

#[tokio::test]
async fn with_json_there_is_one_result_per_turn_of_one_session() {
    let replies =
        [Scripted::Calls("dance", json!({})), Scripted::Words("One."), Scripted::Words("Two.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let done = chat(&dir, &server, &["--json"], "first\nsecond\n").await;
    let results = done.json_lines();
    assert_eq!((done.code, results.len()), (0, 2));
    assert_eq!((&results[0]["output"], &results[1]["output"]), (&json!("One."), &json!("Two.")));
    assert_eq!(results[0]["session"], results[1]["session"]);
    assert_eq!(results[1]["status"], "completed");
}

#[tokio::test]
async fn after_a_failed_turn_the_next_one_runs() {
    let (dir, server) =
        (TestDir::new(), ModelServer::start([Scripted::Fails, Scripted::Words("Yes.")]).await);
    let done = chat(&dir, &server, &["--json"], "hello\nstill there?\n").await;
    let statuses: Vec<_> =
        done.stdout.lines().map(|line| line.contains(r#""status":"completed""#)).collect();
    assert_eq!((done.code, &*statuses), (1, &[false, true][..]), "{done:?}");
}

#[tokio::test]
async fn commands_work_in_pipes_too() {
    let (dir, server) = (TestDir::new(), ModelServer::start([Scripted::Words("One.")]).await);
    let done = chat(&dir, &server, &[], "/dance\nhello\n/log\n/quit\nnever said\n").await;
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("unknown command /dance"), "{done:?}");
    assert!(done.stdout.contains("run_ended completed"), "{done:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_session_is_continued_in_the_next_chat() {
    let replies = [Scripted::Words("One."), Scripted::Words("Two."), Scripted::Words("Three.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let first = chat(&dir, &server, &["--json"], "first\n").await.json();
    let session = first["session"].as_str().unwrap();
    for (args, output) in [(&["--last"][..], "Two.\n"), (&["--session", session], "Three.\n")] {
        assert_eq!(chat(&dir, &server, args, "more\n").await.stdout, output);
    }
    assert_eq!(server.requests()[2]["messages"].as_array().unwrap().len(), 6);
    let model = ["--last", "--model", "openai:another"];
    drop(chat(&dir, &server, &model, "more\n").await);
    assert_eq!(server.requests()[3]["model"], "another");
}

#[tokio::test]
async fn a_missing_session_creates_no_database() {
    let (dir, server) = (TestDir::new(), ModelServer::start([]).await);
    for args in [&["--last", "--json"][..], &["--session", "ses_1", "--json"]] {
        let done = chat(&dir, &server, args, "hello\n").await;
        assert_eq!((done.code, &done.json_error()["code"]), (1, &"input_invalid".into()));
    }
    assert!(!dir.path("helix.db").exists());
}

#[tokio::test]
async fn an_invalid_line_is_one_failed_turn() {
    let (dir, server) = (TestDir::new(), ModelServer::start([Scripted::Words("Yes.")]).await);
    let long = format!("{}\nstill there?\n", "x".repeat((1 << 20) + 1));
    let done = chat(&dir, &server, &["--json"], &long).await;
    let [error, result] = [&done.stderr, &done.stdout]
        .map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
    assert_eq!((done.code, &error["error"]["code"]), (1, &"input_invalid".into()));
    assert_eq!(result["output"], "Yes.");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_name_of_a_tool_cannot_forge_lines() {
    let forged = "calc\n  ✓ calculate (2 ms) {\"value\":666}\u{1b}[31m";
    let replies = [Scripted::Calls(forged, json!({})), Scripted::Words("Done.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let done = chat(&dir, &server, &[], "hello\n").await;
    assert!(done.stdout.starts_with("  ✗ calc   ✓ calculate (2 ms)"), "{done:?}");
    assert!(!done.stdout.contains("\n  ✓"), "{done:?}");
    assert!(!done.stdout.contains('\u{1b}'), "{done:?}");
}

#[tokio::test]
async fn with_json_commands_print_json_too() {
    let (dir, server) = (TestDir::new(), ModelServer::start([Scripted::Words("One.")]).await);
    let lines = "/help\n/model\nhello\n/log\n/sessions\n/state\n/model openai:another\n/new\n";
    let done = chat(&dir, &server, &["--json"], lines).await;
    let lines = done.json_lines();
    assert_eq!(lines[0]["commands"][0]["name"], "/help");
    assert_eq!(lines[1], json!({ "model": "openai:scripted" }));
    assert_eq!(lines.last().unwrap(), &json!({ "model": "openai:another" }));
}

#[tokio::test]
async fn with_json_a_turn_has_its_own_costs() {
    let replies =
        [Scripted::Calls("dance", json!({})), Scripted::Words("One."), Scripted::Words("Two.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let done = chat(&dir, &server, &["--json"], "first\nsecond\n").await;
    let results = done.json_lines();
    let [first, second] = &results[..] else { panic!("{done:?}") };
    assert_eq!((&first["turn"]["steps"], &first["steps"]), (&json!(2), &json!(2)));
    assert_eq!((&second["turn"]["steps"], &second["steps"]), (&json!(1), &json!(3)));
    assert_eq!(second["turn"]["usage"]["input_tokens"], 1200);
    assert_eq!(second["usage"]["input_tokens"], 3600);
}

#[tokio::test]
async fn ctrl_c_interrupts_the_turn_and_skips_the_remaining_lines() {
    let replies = [Scripted::Asks("To be continued", "dance"), Scripted::Words("never")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let mut command = dir.command(&["chat"]);
    command.envs(server.variables()).stdin(Stdio::piped());
    let mut chat = Running::of(command);
    let mut input = chat.child.stdin.take().unwrap();
    input.write_all(b"first\nsecond\n").await.unwrap();
    server.requested().await;
    chat.signal(Signal::INT);
    let line = BufReader::new(chat.child.stderr.take().unwrap()).lines().next_line().await;
    assert!(line.unwrap().unwrap().contains("interrupting"));
    server.let_go();
    let done = chat.end().await;
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.stdout.starts_with("To be continued\n"), "{done:?}");
    assert!(done.stdout.contains("interrupted: /resume continues"), "{done:?}");
    assert_eq!(server.requests().len(), 1);
}
