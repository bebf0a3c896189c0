//! Pending calls: listed, shown, answered and resumed, each by a separate process.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::server::{Server, Turn, model};
use crate::support::{CommandResult, TestDir};

const WRITER: &str = r#"
name = "writer"
prompt = "You write."
[tools.files]
root = "data"
write = true
requires_approval = true
"#;

fn write(path: &str, text: &str) -> Turn {
    Turn::call("write_file", json!({ "path": path, "text": text }))
}

/// Runs the first turn of an agent whose writes need approval.
async fn suspended(dir: &TestDir, turns: Vec<Turn>) -> (Server, Value) {
    let model = model(turns).await;
    dir.ask(&model);
    dir.write("agent.toml", WRITER);
    dir.write("data/there.txt", "");
    let done = dir.helix(&["run", "agent.toml", "Write.", "--json"]).await;
    assert_eq!(done.code, 3, "{done:?}");
    (model, done.json())
}

/// Like [`suspended`], with one pending call of `write_file`.
async fn waiting(dir: &TestDir) -> (Server, String, String) {
    let (model, run) = suspended(dir, vec![write("a.txt", "one"), Turn::Text("Done.")]).await;
    let session = run["session"].as_str().unwrap().to_owned();
    let call = run["suspended"]["calls"][0]["reference"].as_str().unwrap().to_owned();
    (model, session, call)
}

fn text(dir: &TestDir, name: &str) -> Option<String> {
    std::fs::read_to_string(dir.path(name)).ok()
}

#[tokio::test]
async fn a_suspended_run_shows_its_pending_calls() {
    let dir = TestDir::new();
    let (_model, run) = suspended(&dir, vec![write("a.txt", "one"), Turn::Text("Done.")]).await;
    let suspended = &run["suspended"];
    assert_eq!(run["status"], "suspended_client_tool");
    assert_eq!(
        (&suspended["reason"], &suspended["deadline"]),
        (&"client_tool".into(), &json!(null))
    );
    let call = &suspended["calls"][0];
    let session = run["session"].as_str().unwrap();
    assert_eq!(call["reference"], format!("{session}#1.0"));
    assert_eq!((&call["root"], &call["session"]), (&run["session"], &run["session"]));
    assert_eq!((&call["agent"], &call["tool"]), (&"writer".into(), &"write_file".into()));
    assert_eq!(call["kind"], json!({ "approval": { "editable": true } }));
    assert_eq!(call["arguments"], json!({ "path": "a.txt", "text": "one" }));
    assert_eq!(call["expired"], false);
    assert!(call["digest"].is_string() && call["since"].is_number(), "{call}");
    let resume = suspended["resume_command"].as_str().unwrap();
    assert!(resume.ends_with(&format!("helix resume {session}")), "{resume}");
    assert_eq!(text(&dir, "data/a.txt"), None);

    // Resuming before an answer shows the same, and needs neither the agent nor the model.
    std::fs::remove_file(dir.path("agent.toml")).unwrap();
    std::fs::remove_file(dir.path("helix.toml")).unwrap();
    let again = dir.helix(&["resume", "--last", "--json"]).await;
    assert_eq!((again.code, &again.json()["suspended"]), (3, suspended));
    let text_output = dir.helix(&["resume", "--last"]).await;
    assert_eq!(text_output.code, 3);
    for message in [
        "suspended: 0 steps".to_owned(),
        format!("waits    {session}#1.0 for approval (editable): write_file {{\"path\""),
        format!("answer   helix approvals approve '{session}#1.0' (or: deny, edit, show)"),
        format!("resume   helix resume {session}"),
    ] {
        assert!(
            text_output.stdout.contains(&message),
            "{message} is not in {}",
            text_output.stdout
        );
    }
}

#[tokio::test]
async fn the_text_output_of_a_suspended_run() {
    let dir = TestDir::new();
    let model = model(vec![write("a.txt", "one"), Turn::Text("Done.")]).await;
    dir.ask(&model);
    dir.write("agent.toml", WRITER);
    dir.write("data/there.txt", "");
    let done = dir.helix(&["run", "agent.toml", "Write."]).await;
    // There is no answer, so standard output is empty.
    assert_eq!((done.code, &*done.stdout), (3, ""), "{done:?}");
    assert!(
        done.stderr.contains("  ? write_file waits for approval {\"path\":\"a.txt\""),
        "{done:?}"
    );
    assert!(done.stderr.contains(" waits for write_file (1.0)\n"), "{done:?}");
    let tail = dir.helix(&["tail", "--last"]).await;
    assert!(tail.stdout.contains("? write_file waits for approval"), "{tail:?}");
    for (args, message) in [
        (&["sessions", "list"][..], "waiting"),
        (&["sessions", "show", "--last"], "status   waiting"),
        (&["sessions", "show", "--last"], "for approval (editable): write_file"),
        (&["sessions", "log", "--last"], "run_ended suspended, waits for 1.0 write_file"),
    ] {
        let done = dir.helix(args).await;
        assert!(done.stdout.contains(message), "{message} is not in {done:?}");
    }
    let shown = dir.helix(&["sessions", "show", "--last", "--json"]).await.json();
    assert_eq!(
        (&shown["status"], &shown["waiting"][0]["tool"]),
        (&"waiting".into(), &"write_file".into())
    );
}

#[tokio::test]
async fn a_pending_call_is_listed_shown_approved_and_resumed() {
    let dir = TestDir::new();
    let (_model, session, call) = waiting(&dir).await;
    // None of these commands needs the agent or a model.
    let (agent, config) = (text(&dir, "agent.toml").unwrap(), text(&dir, "helix.toml").unwrap());
    std::fs::remove_file(dir.path("agent.toml")).unwrap();
    std::fs::remove_file(dir.path("helix.toml")).unwrap();

    let list = dir.helix(&["approvals", "list"]).await;
    assert!(list.stdout.starts_with("CALL "), "{list:?}");
    assert!(list.stdout.contains(&call) && list.stdout.contains("{\"path\":\"a.txt\""), "{list:?}");
    let listed = dir.helix(&["approvals", "list", "--json"]).await.json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["reference"]), (1, &json!(call)));
    let of_it = dir.helix(&["approvals", "list", "--session", &session, "--json"]).await.json();
    assert_eq!(of_it, listed);

    let shown = dir.helix(&["approvals", "show", &call]).await;
    let digest = listed[0]["digest"].as_str().unwrap();
    for message in [
        format!("call     {call}\nagent    writer\ntool     write_file\nwaits    for approval"),
        "arguments:\n  {\n    \"path\": \"a.txt\",\n    \"text\": \"one\"\n  }\n".to_owned(),
        format!("approve  helix approvals approve '{call}' --digest {digest}"),
        format!("deny     helix approvals deny '{call}'"),
        format!("edit     helix approvals edit '{call}'"),
        format!("resume   helix resume {session}"),
    ] {
        assert!(shown.stdout.contains(&message), "{message} is not in {}", shown.stdout);
    }
    assert_eq!(
        dir.helix(&["approvals", "show", "1.0", "--last", "--json"]).await.json(),
        listed[0]
    );

    let wrong = dir.helix(&["approvals", "approve", &call, "--digest", "else", "--json"]).await;
    assert_eq!((wrong.code, &wrong.json_error()["code"]), (1, &"arguments_changed".into()));
    let done = dir.helix(&["approvals", "approve", &call, "--digest", digest, "--by", "ann"]).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));
    assert_eq!(done.stdout, format!("{call}: approved\nresume   helix resume {session}\n"));
    assert_eq!(text(&dir, "data/a.txt"), None, "an answer does not resume the run");
    let list = dir.helix(&["sessions", "list"]).await;
    assert!(list.stdout.contains(" answered "), "{list:?}");
    let log = dir.helix(&["sessions", "log", "--last"]).await;
    assert!(log.stdout.contains("submitted 1.0 approved by ann"), "{log:?}");

    let twice = dir.helix(&["approvals", "approve", &call]).await;
    assert_eq!((twice.code, &*twice.stdout), (1, ""));
    assert!(twice.stderr.contains("the call has already been answered"), "{twice:?}");
    let shown = dir.helix(&["approvals", "show", &call]).await;
    assert!(shown.stderr.contains("the call has already been answered"), "{shown:?}");
    assert_eq!(dir.helix(&["approvals", "list", "--json"]).await.json(), json!([]));

    dir.write("agent.toml", agent);
    dir.write("helix.toml", config);
    let done = dir.helix(&["resume", &session, "--json"]).await;
    assert_eq!((done.code, &done.json()["output"]), (0, &"Done.".into()));
    assert_eq!(done.json()["suspended"], json!(null));
    assert_eq!(text(&dir, "data/a.txt").as_deref(), Some("one"));
}

#[tokio::test]
async fn the_model_sees_the_reason_of_a_denial() {
    let dir = TestDir::new();
    let (model, session, call) = waiting(&dir).await;
    let deny = ["approvals", "deny", &call, "--reason", "not there", "--resume", "--json"];
    let done = dir.helix(&deny).await;
    let result = done.json();
    assert_eq!(
        (done.code, &result["status"], &result["session"]),
        (0, &"completed".into(), &json!(session))
    );
    assert_eq!(text(&dir, "data/a.txt"), None);
    let asked = model.requests();
    let message = asked.last().unwrap().json()["messages"].to_string();
    assert!(
        message.contains("Tool call write_file was not approved by the user: not there"),
        "{message}"
    );
}

#[tokio::test]
async fn a_call_runs_with_the_edited_arguments() {
    for input in ["option", "standard input", "editor"] {
        let dir = TestDir::new();
        let (_model, _, call) = waiting(&dir).await;
        let new = r#"{"path":"b.txt","text":"two"}"#;
        let done = match input {
            "option" => dir.helix(&["approvals", "edit", &call, "--arguments", new]).await,
            "standard input" => {
                let mut edit = dir.command(&["approvals", "edit", &call, "--arguments", "-"]);
                edit.stdout(Stdio::piped());
                CommandResult::of_input(edit, new).await
            }
            _ => {
                // The editor replaces the file, as some editors do.
                let script = "sed 's/one/two/; s/a.txt/b.txt/' \"$2\" > new && mv new \"$2\"\n";
                dir.write("editor", script);
                let mut edit = dir.command(&["approvals", "edit", &call]);
                edit.env("VISUAL", "sh ./editor --wait").env("EDITOR", "false");
                CommandResult::of(edit.output().await.unwrap())
            }
        };
        assert_eq!(done.code, 0, "{input}: {done:?}");
        let message = format!("{call}: approved with changed arguments\n");
        assert!(done.stdout.starts_with(&message), "{input}: {done:?}");
        assert_eq!(dir.helix(&["resume", "--last"]).await.code, 0);
        assert_eq!(text(&dir, "data/b.txt").as_deref(), Some("two"), "{input}");
        assert_eq!(text(&dir, "data/a.txt"), None);
        let log = dir.helix(&["sessions", "log", "--last"]).await;
        assert!(log.stdout.contains("1.0 approved as {\"path\":\"b.txt\""), "{log:?}");
    }
}

#[tokio::test]
async fn an_unchanged_or_invalid_edit_approves_nothing() {
    let dir = TestDir::new();
    let (_model, _, call) = waiting(&dir).await;
    let edit = async |editor: &str| {
        let mut edit = dir.command(&["approvals", "edit", &call]);
        edit.env("EDITOR", editor).env_remove("VISUAL").env("TMPDIR", dir.path(""));
        let done = CommandResult::of(edit.output().await.unwrap());
        assert_eq!((done.code, &*done.stdout), (1, ""), "{editor}: {done:?}");
        done.stderr
    };
    assert!(
        edit("true")
            .await
            .contains("nothing was approved; to approve the call unchanged: helix approvals")
    );
    assert!(edit("false").await.contains("the editor `false` failed with"));
    assert!(edit("").await.contains("set VISUAL or EDITOR"));
    let message = edit("sh -c 'echo nonsense > \"$1\"' x").await;
    assert!(message.contains("not valid JSON"), "{message}");
    // Invalid arguments are rejected, and the edit is kept.
    let message = edit("sh -c 'echo {\\\"path\\\": 1} > \"$1\"' x").await;
    assert!(
        message.contains("the answer does not match") && message.contains("your edit was saved"),
        "{message}"
    );
    let kept = message.split("--arguments - < ").nth(1).unwrap().split(':').next().unwrap();
    assert_eq!(std::fs::read_to_string(kept.trim()).unwrap(), "{\"path\": 1}\n");
    let list = dir.helix(&["approvals", "list", "--json"]).await.json();
    assert_eq!(list.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_id_without_a_session_is_ambiguous() {
    let dir = TestDir::new();
    let (_model, session, call) = waiting(&dir).await;
    let done = dir.helix(&["approvals", "approve", "1.0", "--json"]).await;
    let error = done.json_error();
    assert_eq!((done.code, &error["code"]), (1, &"input_invalid".into()));
    assert!(
        error["message"].as_str().unwrap().contains(&format!("the candidates are {call}")),
        "{error}"
    );
    for (args, code) in [
        (&["approve", "ses_nowhere#1.0"][..], "session_not_found"),
        (&["approve", "9.9", "--last"], "call_not_found"),
        (&["show", "9.9", "--last"], "call_not_found"),
        (&["answer", &call, "--result", "1"], "answer_wrong_kind"),
        (&["answer", &call, "--result", "{"], "input_invalid"),
        (&["edit", &call, "--arguments", "[]"], "answer_invalid"),
    ] {
        let done = dir.helix(&[&["approvals"], args, &["--json"]].concat()).await;
        assert_eq!((done.code, &done.json_error()["code"]), (1, &code.into()), "{args:?}");
    }
    let done = dir.helix(&["approvals", "approve", "1.0", "--session", &session, "--json"]).await;
    let message = done.json();
    assert_eq!((&message["answer"], &message["waiting"]), (&"approved".into(), &json!(0)));
}

#[tokio::test]
async fn one_of_two_pending_calls_can_be_answered() {
    let dir = TestDir::new();
    let both =
        ["a.txt", "b.txt"].map(|path| ("write_file", json!({ "path": path, "text": "one" })));
    let turns = vec![Turn::Calls(both.to_vec()), Turn::Text("Done.")];
    let (_model, run) = suspended(&dir, turns).await;
    let calls = run["suspended"]["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2);
    let second = calls[1]["reference"].as_str().unwrap();
    let done = dir.helix(&["approvals", "approve", second, "--resume"]).await;
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.stdout.contains("1 other call of the session still waits\n"), "{done:?}");
    assert_eq!(text(&dir, "data/b.txt").as_deref(), Some("one"));
    assert_eq!(text(&dir, "data/a.txt"), None);
    let shown = dir.helix(&["resume", "--last", "--json"]).await;
    assert_eq!((shown.code, &shown.json()["status"]), (3, &"suspended_step_partial".into()));
    let deny = ["approvals", "deny", "1.0", "--last", "--resume", "--json"];
    assert_eq!(dir.helix(&deny).await.json()["status"], "completed");
}

#[tokio::test]
async fn a_page_is_fetched_only_after_approval() {
    let dir = TestDir::new();
    let page = Server::start(|_| crate::support::server::Reply::text("A page.")).await;
    let url = format!("http://127.0.0.1:{}/", page.port);
    let model =
        model(vec![Turn::call("http_get", json!({ "url": url })), Turn::Text("Done.")]).await;
    dir.ask(&model);
    dir.write("agent.toml", format!(
        "name = \"r\"\nprompt = \"x\"\n[tools.http]\nhosts = [\"127.0.0.1:{}\"]\nrequires_approval = true",
        page.port
    ));
    assert_eq!(dir.helix(&["run", "agent.toml", "Read."]).await.code, 3);
    assert_eq!(page.requests().len(), 0);
    let done = dir.helix(&["approvals", "approve", "1.0", "--last", "--resume"]).await;
    assert_eq!((done.code, page.requests().len()), (0, 1), "{done:?}");
}

#[tokio::test]
async fn the_approver_is_the_user_and_another_message_waits_for_the_step() {
    let dir = TestDir::new();
    let (_model, session, call) = waiting(&dir).await;
    let early = dir.helix(&["run", "agent.toml", "And?", "--session", &session, "--json"]).await;
    assert_eq!((early.code, &early.json_error()["code"]), (1, &"suspended".into()));
    let mut approve = dir.command(&["approvals", "approve", &call]);
    assert!(approve.env("USER", "bob").output().await.unwrap().status.success());
    let done = dir.helix(&["run", "agent.toml", "And?", "--session", &session, "--json"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let log = dir.helix(&["sessions", "log", &session]).await.stdout;
    for message in
        ["submitted 1.0 approved by bob", "message_queued And?", "messages_taken 1 message\n"]
    {
        assert!(log.contains(message), "{message} is not in {log}");
    }
}
