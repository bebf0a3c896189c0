//! Tests of commands that use a server: their output is that of the same commands on the server's database.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::{CommandResult, ModelServer, Running, Scripted, Served, TestDir};

const CLERK: &str = "name = \"clerk\"\nprompt = \"You are a clerk.\"\n";

const WRITER: &str = r#"
name = "writer"
prompt = "You write."
[tools.files]
root = "data"
write = true
requires_approval = true
"#;

fn write(path: &str) -> Scripted {
    Scripted::Calls("write_file", json!({ "path": path, "text": "one" }))
}

async fn served(file: &str, replies: Vec<Scripted>) -> (TestDir, ModelServer, Served) {
    let (dir, model) = (TestDir::new(), ModelServer::start(replies).await);
    dir.write("agent.toml", file);
    dir.write("data/there.txt", "");
    let server = Served::start(&dir, &model, &["agent.toml"]).await;
    (dir, model, server)
}

async fn remote(dir: &TestDir, server: &Served, args: &[&str]) -> CommandResult {
    dir.helix(&[args, &["--server", &server.url]].concat()).await
}

/// Runs a command with the server and with its database, and checks that the output is the same except for the members
/// that only one of them knows.
async fn same(dir: &TestDir, server: &Served, args: &[&str], except: &[&str]) -> Vec<Value> {
    let args = [args, &["--json"]].concat();
    let (here, there) = (dir.helix(&args).await, remote(dir, server, &args).await);
    assert_eq!(here.code, there.code, "{here:?} {there:?}");
    let without = |result: &CommandResult| {
        let mut lines = result.json_lines();
        for member in except {
            for line in &mut lines {
                let objects = match line {
                    Value::Array(rows) => rows.iter_mut().collect(),
                    line => vec![line],
                };
                for object in objects {
                    object.as_object_mut().unwrap().remove(*member);
                }
            }
        }
        lines
    };
    assert_eq!(without(&here), without(&there), "{args:?}");
    there.json_lines()
}

#[tokio::test]
async fn a_turn_and_its_records_look_like_local_ones() {
    let replies = vec![
        Scripted::Calls("dance", json!({})),
        Scripted::Words("Done."),
        Scripted::Words("Again."),
    ];
    let (dir, _model, server) = served(CLERK, replies).await;
    let done = remote(&dir, &server, &["run", "clerk", "Go!"]).await;
    assert_eq!((done.code, &*done.stdout), (0, "Done.\n"), "{done:?}");
    for expected in ["agent    clerk", &server.url, "completed in", "2 steps", "✗ dance"] {
        assert!(done.stderr.contains(expected), "{expected} is not in {}", done.stderr);
    }
    let listed = same(&dir, &server, &["sessions", "list"], &["head", "model"]).await;
    let session = listed[0][0]["session"].as_str().unwrap().to_owned();
    same(&dir, &server, &["sessions", "log", &session], &[]).await;
    same(&dir, &server, &["sessions", "show", "--last"], &["head"]).await;
    same(&dir, &server, &["sessions", "checkpoints", "--last"], &[]).await;
    same(&dir, &server, &["tail", &session], &[]).await;
    same(&dir, &server, &["tail", &session, "--from", "4"], &[]).await;
    same(&dir, &server, &["resume", &session], &["db", "log_command", "model"]).await;
    same(&dir, &server, &["approvals", "list"], &[]).await;

    let turn = ["run", "clerk", "More!", "--session", &session, "--json"];
    let again = remote(&dir, &server, &turn).await.json();
    assert_eq!((&again["session"], &again["output"]), (&session.clone().into(), &"Again.".into()));
    assert_eq!((&again["runs"], &again["steps"]), (&2.into(), &3.into()));
    assert!(again["log_command"].as_str().unwrap().ends_with(&format!("--server {}", server.url)));

    let fork =
        remote(&dir, &server, &["sessions", "fork", &session, "--step", "1", "--as", "copy"]).await;
    assert_eq!((fork.code, &*fork.stdout), (0, "copy\n"), "{fork:?}");
    let deleted = remote(&dir, &server, &["sessions", "delete", "copy"]).await;
    assert_eq!((deleted.code, &*deleted.stdout), (0, "deleted copy\n"), "{deleted:?}");
    let missing = remote(&dir, &server, &["sessions", "show", "copy", "--json"]).await;
    assert_eq!((missing.code, &missing.json_error()["code"]), (1, &"session_not_found".into()));
    server.kill().await;
}

#[tokio::test]
async fn a_call_is_approved_with_its_digest_and_the_run_is_followed() {
    let replies = vec![write("a.txt"), Scripted::Words("Written.")];
    let (dir, _model, server) = served(WRITER, replies).await;
    let run = remote(&dir, &server, &["run", "writer", "Write.", "--json"]).await;
    assert_eq!(run.code, 3, "{run:?}");
    let calls = same(&dir, &server, &["approvals", "list"], &[]).await;
    let call = calls[0][0]["reference"].as_str().unwrap().to_owned();
    assert_eq!(run.json()["suspended"]["calls"], calls[0]);
    same(&dir, &server, &["approvals", "show", &call], &[]).await;
    let digest = calls[0][0]["digest"].as_str().unwrap();
    let answer = ["approvals", "approve", &call, "--digest"];
    let wrong = remote(&dir, &server, &[&answer[..], &["0", "--json"]].concat()).await;
    assert_eq!((wrong.code, &wrong.json_error()["code"]), (1, &"arguments_changed".into()));
    let done =
        remote(&dir, &server, &[&answer[..], &[digest, "--resume", "--json"]].concat()).await;
    assert_eq!((done.code, &done.json()["output"]), (0, &"Written.".into()), "{done:?}");
    assert_eq!(std::fs::read_to_string(dir.path("data/a.txt")).unwrap(), "one");
    let late = remote(&dir, &server, &["approvals", "show", &call, "--json"]).await;
    assert_eq!((late.code, &late.json_error()["code"]), (1, &"call_not_found".into()));
    server.kill().await;
}

#[tokio::test]
async fn an_answered_session_is_resumed_by_the_server_or_by_the_command() {
    let replies = vec![write("a.txt"), Scripted::Words("Then not.")];
    let (dir, model, server) = served(WRITER, replies).await;
    let run = remote(&dir, &server, &["run", "writer", "Write.", "--json"]).await.json();
    let session = run["session"].as_str().unwrap();
    let call = format!("{session}#1.0");
    let denied = remote(&dir, &server, &["approvals", "deny", &call, "--reason", "no ink"]).await;
    assert_eq!(denied.code, 0, "{denied:?}");
    let resume = format!("helix resume {session} --server {}", server.url);
    assert!(denied.stdout.contains(&resume), "{denied:?}");
    let done = remote(&dir, &server, &["resume", session, "--json"]).await;
    assert_eq!((done.code, &done.json()["output"]), (0, &"Then not.".into()), "{done:?}");
    assert!(model.requests()[1].to_string().contains("no ink"));
    server.kill().await;
}

#[tokio::test]
async fn a_chat_has_its_turns_at_the_server() {
    let replies = vec![Scripted::Words("One."), Scripted::Words("Two.")];
    let (dir, model, server) = served(CLERK, replies).await;
    let mut command = dir.command(&["chat", "--server", &server.url]);
    command.env("HOME", dir.path("")).stdout(Stdio::piped());
    let done = CommandResult::of_input(command, "first\nsecond\n/model\n/model openai:x\n").await;
    assert_eq!(
        (done.code, &*done.stdout),
        (1, "One.\nTwo.\nthe server chooses the model\n"),
        "{done:?}"
    );
    assert!(done.stderr.contains("the server determines the agent"), "{done:?}");
    assert_eq!(model.requests()[1]["messages"].as_array().unwrap().len(), 4);
    let mut command = dir.command(&["chat", "--server", &server.url, "--last", "--json"]);
    command.env("HOME", dir.path("")).stdout(Stdio::piped());
    let state = CommandResult::of_input(command, "/state\n").await;
    assert_eq!((state.code, &*state.stdout), (0, "null\n"), "{state:?}");
    server.kill().await;
}

#[tokio::test]
async fn sigterm_leaves_a_run_that_can_be_interrupted_and_aborted() {
    let replies = vec![Scripted::Asks("One, ", "dance"), Scripted::Words("Done.")];
    let (dir, model, server) = served(CLERK, replies).await;
    let mut run = Running::of(dir.command(&["run", "clerk", "Go!", "--server", &server.url]));
    let mut stderr = BufReader::new(run.child.stderr.take().unwrap()).lines();
    // The heading is shown once the command handles signals.
    while !stderr.next_line().await.unwrap().unwrap().starts_with("session ") {}
    model.requested().await;
    run.signal(rustix::process::Signal::TERM);
    let mut left = String::new();
    while let Some(line) = stderr.next_line().await.unwrap() {
        left.push_str(&line);
    }
    assert_eq!(run.end().await.code, 4, "{left}");
    let follow = format!("--server {}", server.url);
    assert!(left.contains("the run continues at the server") && left.contains(&follow), "{left}");
    let interrupted = remote(&dir, &server, &["interrupt", "--last"]).await;
    assert_eq!(interrupted.code, 0, "{interrupted:?}");
    model.let_go();
    let tail = remote(&dir, &server, &["tail", "--last", "--json"]).await.json_lines();
    assert_eq!(tail.last().unwrap()["type"], "run_interrupted");
    let aborted = remote(&dir, &server, &["abort", "--last", "--json"]).await.json();
    assert_eq!(aborted["aborted"], true);
    server.kill().await;
}

#[tokio::test]
async fn commands_that_need_a_database_say_so() {
    let (dir, _model, server) = served(CLERK, vec![]).await;
    for args in [
        &["usage"][..],
        &["demo", "--scripted"],
        &["sessions", "purge", "--older-than", "1d"],
        &["migrate"],
        &["doctor"],
    ] {
        let done = remote(&dir, &server, &[args, &["--json"]].concat()).await;
        assert_eq!((done.code, &done.json_error()["code"]), (1, &"unsupported".into()), "{args:?}");
    }
    let both =
        dir.helix(&["--server", &server.url, "sessions", "list", "--db", "x.db", "--json"]).await;
    assert_eq!((both.code, &both.json_error()["code"]), (1, &"input_invalid".into()));
    let alone = dir.helix(&["--token-file", "token", "sessions", "list", "--json"]).await;
    assert_eq!((alone.code, &alone.json_error()["code"]), (1, &"input_invalid".into()));
    let model = remote(&dir, &server, &["run", "clerk", "Go!", "--model", "a:b", "--json"]).await;
    assert_eq!((model.code, &model.json_error()["code"]), (1, &"input_invalid".into()));
    server.kill().await;
    let gone = dir.helix(&["--server", "nowhere", "sessions", "list", "--json"]).await;
    assert_eq!((gone.code, &gone.json_error()["code"]), (1, &"config_invalid".into()));
}
