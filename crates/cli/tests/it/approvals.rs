//! Calls that wait for people: suspended, looked at, answered and gone on with, each by a process of
//! its own.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::server::{Server, Turn, model};
use crate::support::{Done, Place};

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

/// A place whose agent writes, with its session after the first turn.
async fn suspended(place: &Place, turns: Vec<Turn>) -> (Server, Value) {
    let model = model(turns).await;
    place.ask(&model);
    place.write("agent.toml", WRITER);
    place.write("data/there.txt", "");
    let done = place.helix(&["run", "agent.toml", "Write.", "--json"]).await;
    assert_eq!(done.code, 3, "{done:?}");
    (model, done.json())
}

/// As [`suspended`], with a call of `write_file` that is answered by some words.
async fn waiting(place: &Place) -> (Server, String, String) {
    let (model, run) = suspended(place, vec![write("a.txt", "one"), Turn::Text("Done.")]).await;
    let session = run["session"].as_str().unwrap().to_owned();
    let call = run["suspended"]["calls"][0]["reference"].as_str().unwrap().to_owned();
    (model, session, call)
}

fn text(place: &Place, name: &str) -> Option<String> {
    std::fs::read_to_string(place.path(name)).ok()
}

#[tokio::test]
async fn a_suspended_run_says_what_it_waits_for() {
    let place = Place::new();
    let (_model, run) = suspended(&place, vec![write("a.txt", "one"), Turn::Text("Done.")]).await;
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
    assert_eq!(text(&place, "data/a.txt"), None);

    // Resuming before anybody has answered tells the same, and needs neither agent nor model.
    std::fs::remove_file(place.path("agent.toml")).unwrap();
    std::fs::remove_file(place.path("helix.toml")).unwrap();
    let again = place.helix(&["resume", "--last", "--json"]).await;
    assert_eq!((again.code, &again.json()["suspended"]), (3, suspended));
    let people = place.helix(&["resume", "--last"]).await;
    assert_eq!(people.code, 3);
    for told in [
        "suspended: 0 steps".to_owned(),
        format!("waits    {session}#1.0 for approval (editable): write_file {{\"path\""),
        format!("answer   helix approvals approve '{session}#1.0' (or: deny, edit, show)"),
        format!("go on    helix resume {session}"),
    ] {
        assert!(people.stdout.contains(&told), "{told} is not in {}", people.stdout);
    }
}

#[tokio::test]
async fn the_lines_of_a_run_that_waits() {
    let place = Place::new();
    let model = model(vec![write("a.txt", "one"), Turn::Text("Done.")]).await;
    place.ask(&model);
    place.write("agent.toml", WRITER);
    place.write("data/there.txt", "");
    let done = place.helix(&["run", "agent.toml", "Write."]).await;
    // There is no answer, so nothing is in the pipe.
    assert_eq!((done.code, &*done.stdout), (3, ""), "{done:?}");
    assert!(
        done.stderr.contains("  ? write_file waits for approval {\"path\":\"a.txt\""),
        "{done:?}"
    );
    assert!(done.stderr.contains(" waits for write_file (1.0)\n"), "{done:?}");
    let tail = place.helix(&["tail", "--last"]).await;
    assert!(tail.stdout.contains("? write_file waits for approval"), "{tail:?}");
    for (args, told) in [
        (&["sessions", "list"][..], "waiting"),
        (&["sessions", "show", "--last"], "status   waiting"),
        (&["sessions", "show", "--last"], "for approval (editable): write_file"),
        (&["sessions", "log", "--last"], "run_ended suspended, waits for 1.0 write_file"),
    ] {
        let done = place.helix(args).await;
        assert!(done.stdout.contains(told), "{told} is not in {done:?}");
    }
    let shown = place.helix(&["sessions", "show", "--last", "--json"]).await.json();
    assert_eq!(
        (&shown["standing"], &shown["waiting"][0]["tool"]),
        (&"waiting".into(), &"write_file".into())
    );
}

#[tokio::test]
async fn what_waits_is_listed_shown_approved_and_gone_on_with() {
    let place = Place::new();
    let (_model, session, call) = waiting(&place).await;
    // None of these needs the agent or a model.
    let (agent, config) =
        (text(&place, "agent.toml").unwrap(), text(&place, "helix.toml").unwrap());
    std::fs::remove_file(place.path("agent.toml")).unwrap();
    std::fs::remove_file(place.path("helix.toml")).unwrap();

    let list = place.helix(&["approvals", "list"]).await;
    assert!(list.stdout.starts_with("CALL "), "{list:?}");
    assert!(list.stdout.contains(&call) && list.stdout.contains("{\"path\":\"a.txt\""), "{list:?}");
    let listed = place.helix(&["approvals", "list", "--json"]).await.json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["reference"]), (1, &json!(call)));
    let of_it = place.helix(&["approvals", "list", "--session", &session, "--json"]).await.json();
    assert_eq!(of_it, listed);

    let shown = place.helix(&["approvals", "show", &call]).await;
    let digest = listed[0]["digest"].as_str().unwrap();
    for told in [
        format!("call     {call}\nagent    writer\ntool     write_file\nwaits    for approval"),
        "arguments:\n  {\n    \"path\": \"a.txt\",\n    \"text\": \"one\"\n  }\n".to_owned(),
        format!("approve  helix approvals approve '{call}' --digest {digest}"),
        format!("deny     helix approvals deny '{call}'"),
        format!("edit     helix approvals edit '{call}'"),
        format!("go on    helix resume {session}"),
    ] {
        assert!(shown.stdout.contains(&told), "{told} is not in {}", shown.stdout);
    }
    assert_eq!(
        place.helix(&["approvals", "show", "1.0", "--last", "--json"]).await.json(),
        listed[0]
    );

    let wrong = place.helix(&["approvals", "approve", &call, "--digest", "else", "--json"]).await;
    assert_eq!((wrong.code, &wrong.json_error()["code"]), (1, &"arguments_changed".into()));
    let done =
        place.helix(&["approvals", "approve", &call, "--digest", digest, "--by", "ann"]).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));
    assert_eq!(done.stdout, format!("approved: {call}\ngo on    helix resume {session}\n"));
    assert_eq!(text(&place, "data/a.txt"), None, "answering does not go on");
    let list = place.helix(&["sessions", "list"]).await;
    assert!(list.stdout.contains(" answered "), "{list:?}");
    let log = place.helix(&["sessions", "log", "--last"]).await;
    assert!(log.stdout.contains("submitted 1.0 approved by ann"), "{log:?}");

    let twice = place.helix(&["approvals", "approve", &call]).await;
    assert_eq!((twice.code, &*twice.stdout), (1, ""));
    assert!(twice.stderr.contains("the call has already been answered"), "{twice:?}");
    let shown = place.helix(&["approvals", "show", &call]).await;
    assert!(shown.stderr.contains("the call was answered"), "{shown:?}");
    assert_eq!(place.helix(&["approvals", "list", "--json"]).await.json(), json!([]));

    place.write("agent.toml", agent);
    place.write("helix.toml", config);
    let done = place.helix(&["resume", &session, "--json"]).await;
    assert_eq!((done.code, &done.json()["output"]), (0, &"Done.".into()));
    assert_eq!(done.json()["suspended"], json!(null));
    assert_eq!(text(&place, "data/a.txt").as_deref(), Some("one"));
}

#[tokio::test]
async fn a_denied_call_is_told_to_the_model_with_the_reason() {
    let place = Place::new();
    let (model, session, call) = waiting(&place).await;
    let deny = ["approvals", "deny", &call, "--reason", "not there", "--resume", "--json"];
    let done = place.helix(&deny).await;
    let result = done.json();
    assert_eq!(
        (done.code, &result["status"], &result["session"]),
        (0, &"completed".into(), &json!(session))
    );
    assert_eq!(text(&place, "data/a.txt"), None);
    let asked = model.requests();
    let told = asked.last().unwrap().json()["messages"].to_string();
    assert!(
        told.contains("Tool call write_file was not approved by the user: not there"),
        "{told}"
    );
}

#[tokio::test]
async fn a_call_runs_with_the_arguments_of_whoever_approves_it() {
    for how in ["option", "standard input", "editor"] {
        let place = Place::new();
        let (_model, _, call) = waiting(&place).await;
        let new = r#"{"path":"b.txt","text":"two"}"#;
        let done = match how {
            "option" => place.helix(&["approvals", "edit", &call, "--arguments", new]).await,
            "standard input" => {
                let mut edit = place.command(&["approvals", "edit", &call, "--arguments", "-"]);
                edit.stdout(Stdio::piped());
                Done::of_input(edit, new).await
            }
            _ => {
                // It puts another file in place of the one it was given, as some editors do.
                let script = "sed 's/one/two/; s/a.txt/b.txt/' \"$2\" > new && mv new \"$2\"\n";
                place.write("editor", script);
                let mut edit = place.command(&["approvals", "edit", &call]);
                edit.env("VISUAL", "sh ./editor --wait").env("EDITOR", "false");
                Done::of(edit.output().await.unwrap())
            }
        };
        assert_eq!(done.code, 0, "{how}: {done:?}");
        let told = format!("approved with other arguments: {call}\n");
        assert!(done.stdout.starts_with(&told), "{how}: {done:?}");
        assert_eq!(place.helix(&["resume", "--last"]).await.code, 0);
        assert_eq!(text(&place, "data/b.txt").as_deref(), Some("two"), "{how}");
        assert_eq!(text(&place, "data/a.txt"), None);
        let log = place.helix(&["sessions", "log", "--last"]).await;
        assert!(log.stdout.contains("1.0 approved as {\"path\":\"b.txt\""), "{log:?}");
    }
}

#[tokio::test]
async fn an_editor_that_changes_nothing_or_leaves_nonsense_approves_nothing() {
    let place = Place::new();
    let (_model, _, call) = waiting(&place).await;
    let edit = async |editor: &str| {
        let mut edit = place.command(&["approvals", "edit", &call]);
        edit.env("EDITOR", editor).env_remove("VISUAL").env("TMPDIR", place.path(""));
        let done = Done::of(edit.output().await.unwrap());
        assert_eq!((done.code, &*done.stdout), (1, ""), "{editor}: {done:?}");
        done.stderr
    };
    assert!(
        edit("true").await.contains("nothing was approved; to approve them so: helix approvals")
    );
    assert!(edit("false").await.contains("the editor `false` ended with"));
    assert!(edit("").await.contains("set VISUAL or EDITOR"));
    let told = edit("sh -c 'echo nonsense > \"$1\"' x").await;
    assert!(told.contains("this is not JSON"), "{told}");
    // What fits no arguments of the tool is refused, and not lost.
    let told = edit("sh -c 'echo {\\\"path\\\": 1} > \"$1\"' x").await;
    assert!(
        told.contains("the answer does not fit") && told.contains("what you wrote is kept"),
        "{told}"
    );
    let kept = told.split("--arguments - < ").nth(1).unwrap().split(':').next().unwrap();
    assert_eq!(std::fs::read_to_string(kept.trim()).unwrap(), "{\"path\": 1}\n");
    let list = place.helix(&["approvals", "list", "--json"]).await.json();
    assert_eq!(list.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_alone_answers_nothing() {
    let place = Place::new();
    let (_model, session, call) = waiting(&place).await;
    let done = place.helix(&["approvals", "approve", "1.0", "--json"]).await;
    let error = done.json_error();
    assert_eq!((done.code, &error["code"]), (1, &"input_invalid".into()));
    assert!(error["message"].as_str().unwrap().contains(&format!("there are {call}")), "{error}");
    for (args, code) in [
        (&["approve", "ses_nowhere#1.0"][..], "session_not_found"),
        (&["approve", "9.9", "--last"], "call_not_found"),
        (&["show", "9.9", "--last"], "call_not_found"),
        (&["answer", &call, "--result", "1"], "answer_wrong_kind"),
        (&["answer", &call, "--result", "{"], "input_invalid"),
        (&["edit", &call, "--arguments", "[]"], "answer_invalid"),
    ] {
        let done = place.helix(&[&["approvals"], args, &["--json"]].concat()).await;
        assert_eq!((done.code, &done.json_error()["code"]), (1, &code.into()), "{args:?}");
    }
    let done = place.helix(&["approvals", "approve", "1.0", "--session", &session, "--json"]).await;
    let told = done.json();
    assert_eq!((&told["answer"], &told["waiting"]), (&"approved".into(), &json!(0)));
}

#[tokio::test]
async fn of_two_calls_one_is_answered_and_the_other_still_waits() {
    let place = Place::new();
    let both =
        ["a.txt", "b.txt"].map(|path| ("write_file", json!({ "path": path, "text": "one" })));
    let turns = vec![Turn::Calls(both.to_vec()), Turn::Text("Done.")];
    let (_model, run) = suspended(&place, turns).await;
    let calls = run["suspended"]["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2);
    let second = calls[1]["reference"].as_str().unwrap();
    let done = place.helix(&["approvals", "approve", second, "--resume"]).await;
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.stdout.contains("1 other call of the session still waits\n"), "{done:?}");
    assert_eq!(text(&place, "data/b.txt").as_deref(), Some("one"));
    assert_eq!(text(&place, "data/a.txt"), None);
    let shown = place.helix(&["resume", "--last", "--json"]).await;
    assert_eq!((shown.code, &shown.json()["status"]), (3, &"suspended_step_partial".into()));
    let deny = ["approvals", "deny", "1.0", "--last", "--resume", "--json"];
    assert_eq!(place.helix(&deny).await.json()["status"], "completed");
}

#[tokio::test]
async fn a_page_is_fetched_only_if_somebody_approves_it() {
    let place = Place::new();
    let page = Server::start(|_| crate::support::server::Reply::text("A page.")).await;
    let url = format!("http://127.0.0.1:{}/", page.port);
    let model =
        model(vec![Turn::call("http_get", json!({ "url": url })), Turn::Text("Done.")]).await;
    place.ask(&model);
    place.write("agent.toml", format!(
        "name = \"r\"\nprompt = \"x\"\n[tools.http]\nhosts = [\"127.0.0.1:{}\"]\nrequires_approval = true",
        page.port
    ));
    assert_eq!(place.helix(&["run", "agent.toml", "Read."]).await.code, 3);
    assert_eq!(page.requests().len(), 0);
    let done = place.helix(&["approvals", "approve", "1.0", "--last", "--resume"]).await;
    assert_eq!((done.code, page.requests().len()), (0, 1), "{done:?}");
}

#[tokio::test]
async fn who_answers_is_the_user_and_a_further_message_waits_for_the_step() {
    let place = Place::new();
    let (_model, session, call) = waiting(&place).await;
    let early = place.helix(&["run", "agent.toml", "And?", "--session", &session, "--json"]).await;
    assert_eq!((early.code, &early.json_error()["code"]), (1, &"suspended".into()));
    let mut approve = place.command(&["approvals", "approve", &call]);
    assert!(approve.env("USER", "bob").output().await.unwrap().status.success());
    let done = place.helix(&["run", "agent.toml", "And?", "--session", &session, "--json"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let log = place.helix(&["sessions", "log", &session]).await.stdout;
    for told in
        ["submitted 1.0 approved by bob", "message_queued And?", "messages_taken 1 message\n"]
    {
        assert!(log.contains(told), "{told} is not in {log}");
    }
}
