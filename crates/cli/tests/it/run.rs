//! Tests of `helix run` with a scripted model server.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::TestDir;
use crate::support::server::{Reply, Server, Turn, model};

const CALCULATOR: &str = r#"
name = "reckoner"
prompt = "You compute."
[tools.calculator]
"#;

const TYPED: &str = r#"
name = "reckoner"
prompt = "You compute."
[output.schema]
type = "object"
required = ["sum"]
properties.sum.type = "integer"
[tools.calculator]
"#;

#[tokio::test]
async fn an_agent_file_and_a_prompt_give_an_answer() {
    let dir = TestDir::new();
    let model = model(vec![
        Turn::call("calculate", json!({ "expression": "6 * 7" })),
        Turn::Text("It is 42."),
    ])
    .await;
    dir.ask(&model);
    dir.write("agent.toml", CALCULATOR);
    let done = dir.helix(&["run", "agent.toml", "What is six times seven?"]).await;
    // Only the answer is written to the pipe.
    assert_eq!((done.code, &*done.stdout), (0, "It is 42.\n"), "{done:?}");
    for expected in [
        "agent    reckoner",
        "model    mine:small",
        "→ calculate {\"expression\":\"6 * 7\"}",
        "{\"value\":42}",
        "completed in",
        "tokens   20 in",
    ] {
        assert!(done.stderr.contains(expected), "{expected} is not in {}", done.stderr);
    }
    assert_eq!(done.stderr.matches("It is 42.").count(), 1, "{}", done.stderr);

    let asked = model.requests();
    let (first, second) = (asked[0].json(), asked[1].json());
    assert_eq!(first["messages"][0], json!({ "role": "system", "content": "You compute." }));
    assert_eq!(first["messages"][1]["content"], "What is six times seven?");
    assert_eq!(first["tools"][0]["function"]["name"], "calculate");
    assert_eq!(second["messages"][3]["content"], "{\"value\":42}");
}

#[tokio::test]
async fn with_json_the_typed_output_is_all_there_is() {
    let dir = TestDir::new();
    let model = model(vec![Turn::finish(json!({ "sum": 42 }))]).await;
    dir.ask(&model);
    dir.write("agent.toml", TYPED);
    let done = dir.helix(&["run", "agent.toml", "Compute.", "--json"]).await;
    let result = done.json();
    assert_eq!((done.code, &result["status"]), (0, &"completed".into()));
    assert_eq!(result["output"], json!({ "sum": 42 }));
    assert_eq!((&result["model"], &result["scripted"]), (&"mine:small".into(), &false.into()));

    let text = dir.helix(&["run", "agent.toml", "Compute."]).await;
    assert_eq!(text.stdout, "{\n  \"sum\": 42\n}\n", "{text:?}");
}

#[tokio::test]
async fn the_output_of_an_ended_session_is_shown_without_its_agent() {
    let dir = TestDir::new();
    let fact = json!({ "body": "Titan", "statement": "It is large." });
    let report = json!({ "question": "Which?", "answer": "Titan.", "facts": [fact] });
    let model = model(vec![Turn::finish(report.clone())]).await;
    dir.ask(&model);
    let typed = "name = \"reckoner\"\nprompt = \"x\"\n[output.schema]\ntype = \"object\"\n";
    dir.write("agent.toml", typed);
    let done = dir.helix(&["run", "agent.toml", "Compute."]).await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&done.stdout).unwrap(), report);

    // The session has ended, so its agent and its model are no longer needed.
    std::fs::remove_file(dir.path("agent.toml")).unwrap();
    std::fs::remove_file(dir.path("helix.toml")).unwrap();
    let shown = dir.helix(&["resume", "--last"]).await;
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.stdout.contains("\"answer\": \"Titan.\""), "{shown:?}");
    assert!(!shown.stdout.contains("Report"), "{shown:?}");
}

#[tokio::test]
async fn an_invalid_output_fails_after_the_retries() {
    let dir = TestDir::new();
    let model = model(vec![Turn::finish(json!({ "sum": "many" })); 4]).await;
    dir.ask(&model);
    dir.write("agent.toml", TYPED);
    let done = dir.helix(&["run", "agent.toml", "Compute.", "--json"]).await;
    let result = done.json();
    assert_eq!((done.code, &result["error"]["code"]), (1, &"output_invalid".into()), "{result}");
    let detail = result["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("at /sum: \"many\" is not of type"), "{detail}");
}

#[tokio::test]
async fn the_prompt_may_come_from_standard_input() {
    for args in [&["run", "agent.toml", "-", "--json"][..], &["run", "agent.toml", "--json"]] {
        let dir = TestDir::new();
        let model = model(vec![Turn::Text("Fine.")]).await;
        dir.ask(&model);
        dir.write("agent.toml", CALCULATOR);
        let mut command = dir.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all("How are you?\n".as_bytes()).await.unwrap();
        assert_eq!(child.wait_with_output().await.unwrap().status.code(), Some(0));
        assert_eq!(model.requests()[0].json()["messages"][1]["content"], "How are you?\n");
    }
}

#[tokio::test]
async fn without_a_prompt_nothing_is_started() {
    let dir = TestDir::new();
    dir.write("agent.toml", CALCULATOR);
    let done = dir.helix(&["run", "agent.toml", "--json"]).await;
    let error = done.json_error();
    assert_eq!((done.code, &error["code"]), (2, &"usage".into()));
    assert!(error["message"].as_str().unwrap().contains("on standard input"), "{error}");
    assert!(!dir.path("helix.db").exists());
}

#[tokio::test]
async fn a_session_continues_with_another_turn() {
    let dir = TestDir::new();
    let model = model(vec![
        Turn::call("note", json!({ "action": "write", "title": "name", "text": "Ada" })),
        Turn::Text("Hello, Ada."),
        Turn::Text("You are Ada."),
    ])
    .await;
    dir.ask(&model);
    dir.write("agent.toml", "name = \"host\"\nprompt = \"Be kind.\"\n[tools.note]\n");
    let first = dir.helix(&["run", "agent.toml", "I am Ada.", "--json"]).await.json();
    let session = first["session"].as_str().unwrap();
    let further = ["run", "agent.toml", "Who am I?", "--session", session, "--json"];
    let second = dir.helix(&further).await.json();
    assert_eq!((&second["session"], &second["output"]), (&session.into(), &"You are Ada.".into()));

    let system = model.requests()[2].json()["messages"][0]["content"].clone();
    assert_eq!(system, "Be kind.\n\nYour notes from this session:\n- name: Ada");
    let shown = dir.helix(&["sessions", "show", session]).await.stdout;
    assert!(shown.contains("state    {\"notes\":{\"name\":\"Ada\"}}"), "{shown}");

    for (args, code) in [
        (["run", "agent.toml", "Hi", "--session", "ses_unknown", "--json"], "session_not_found"),
        (["run", "other.toml", "Hi", "--session", session, "--json"], "agent_mismatch"),
    ] {
        dir.write("other.toml", CALCULATOR);
        let done = dir.helix(&args).await;
        assert_eq!((done.code, &done.json_error()["code"]), (1, &code.into()));
    }
}

#[tokio::test]
async fn a_session_of_the_demo_has_no_agent_file() {
    let (dir, session) = TestDir::after_demo().await;
    dir.write("agent.toml", CALCULATOR);
    let done = dir.helix(&["run", "agent.toml", "Hi", "--session", &session, "--json"]).await;
    assert_eq!((done.code, &done.json_error()["code"]), (1, &"agent_mismatch".into()));
}

#[tokio::test]
async fn the_requested_model_is_used() {
    let dir = TestDir::new();
    let model = model(vec![Turn::Text("Fine.")]).await;
    dir.ask(&model);
    dir.write("agent.toml", format!("model = \"mine:named\"\n{CALCULATOR}"));
    let run = |more: &[&str]| dir.helix(&[&["run", "agent.toml", "Hi", "--json"], more].concat());
    assert_eq!(run(&[]).await.json()["model"], "mine:named");
    assert_eq!(run(&["--model", "mine:other"]).await.json()["model"], "mine:other");
    let script = run(&["--model", "script"]).await;
    assert_eq!((script.code, &script.json_error()["code"]), (1, &"model_unknown".into()));
    let asked: Vec<_> =
        model.requests().iter().map(|request| request.json()["model"].clone()).collect();
    assert_eq!(asked, ["named", "other"]);
}

/// A session whose process was killed during an HTTP request of a tool.
async fn killed_in_a_tool() -> (TestDir, Server, Server) {
    let pages = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let web =
        Server::start(move |_| match pages.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::Hold,
            _ => Reply::text("It rains."),
        })
        .await;
    let dir = TestDir::new();
    let url = format!("http://127.0.0.1:{}/weather", web.port);
    let model = model(vec![
        Turn::call("calculate", json!({ "expression": "1 + 1" })),
        Turn::call("http_get", json!({ "url": url })),
        Turn::Text("Take an umbrella."),
    ])
    .await;
    dir.ask(&model);
    let tools = format!("[tools.http]\nhosts = [\"127.0.0.1:{}\"]\n", web.port);
    dir.write("agents/agent.toml", format!("{CALCULATOR}{tools}"));
    let running = dir.start(&["run", "agents/agent.toml", "An umbrella?"]);
    web.arrived().await;
    running.signal(Signal::KILL);
    assert_eq!(running.end().await.code, -1);
    (dir, model, web)
}

#[tokio::test]
async fn a_session_killed_in_a_tool_is_resumed_with_its_agent_file() {
    let (dir, model, web) = killed_in_a_tool().await;
    let list = dir.helix(&["sessions", "list", "--json"]).await.json();
    let tags = &list[0]["head"]["created"]["tags"];
    let file = dir.path("agents/agent.toml").canonicalize().unwrap();
    assert_eq!(tags["agent_file"], file.to_str().unwrap());
    assert_eq!(tags["model"], "mine:small");

    let resumed = dir.helix(&["resume", "--last", "--json"]).await;
    let result = resumed.json();
    assert_eq!((resumed.code, &result["output"]), (0, &"Take an umbrella.".into()), "{result}");
    assert_eq!((&result["runs"], &result["tool_calls"]), (&2.into(), &2.into()));
    // The page was requested once per process, and each reply of the model once.
    assert_eq!((web.requests().len(), model.requests().len()), (2, 3));
}

#[tokio::test]
async fn a_changed_or_missing_agent_file_is_reported() {
    let (dir, _model, _web) = killed_in_a_tool().await;
    let file = dir.path("agents/agent.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let gone = dir.helix(&["resume", "--last", "--json"]).await;
    let error = gone.json_error();
    assert_eq!((gone.code, &error["code"]), (1, &"input_invalid".into()));
    assert!(error["message"].as_str().unwrap().contains("--agent FILE"), "{error}");

    dir.write("other.toml", text.replace("reckoner", "other"));
    let other = dir.helix(&["resume", "--last", "--agent", "other.toml", "--json"]).await;
    assert_eq!((other.code, &other.json_error()["code"]), (1, &"agent_mismatch".into()));

    dir.write("moved.toml", text.replace("You compute.", "You compute well."));
    let resumed = dir.helix(&["resume", "--last", "--agent", "moved.toml"]).await;
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(resumed.stderr.contains("has changed since"), "{resumed:?}");
    assert!(resumed.stderr.contains("with which the session was created"), "{resumed:?}");
    assert!(resumed.stdout.contains("Take an umbrella."), "{resumed:?}");
}

#[tokio::test]
async fn a_killed_session_can_be_resumed_with_another_model() {
    let (dir, model, _web) = killed_in_a_tool().await;
    let resume = ["resume", "--last", "--model", "mine:other", "--json"];
    let result = dir.helix(&resume).await.json();
    assert_eq!((&result["status"], &result["model"]), (&"completed".into(), &"mine:other".into()));
    assert_eq!(model.requests().last().unwrap().json()["model"], "other");
}

async fn wait_for_line(
    lines: &mut tokio::io::Lines<BufReader<tokio::process::ChildStderr>>,
    text: &str,
) {
    while !lines.next_line().await.unwrap().unwrap().contains(text) {}
}

#[tokio::test]
async fn a_second_signal_during_termination_exits_immediately() {
    for again in [Signal::TERM, Signal::INT] {
        let dir = TestDir::new();
        let model = model(vec![Turn::Silence]).await;
        dir.ask(&model);
        dir.write("agent.toml", CALCULATOR);
        let mut running = dir.start(&["run", "agent.toml", "Hello?"]);
        model.arrived().await;
        running.signal(Signal::TERM);
        let mut lines = BufReader::new(running.child.stderr.take().unwrap()).lines();
        wait_for_line(&mut lines, "terminating").await;
        running.signal(again);
        // Without the second signal, the model would have five seconds.
        let soon = Duration::from_secs(3);
        tokio::time::timeout(soon, wait_for_line(&mut lines, "stopped; to resume: helix resume"))
            .await
            .unwrap();
        let done = tokio::time::timeout(soon, running.end()).await.unwrap();
        assert_eq!((done.code, &*done.stdout), (4, ""), "{done:?}");
    }
}

#[tokio::test]
async fn ctrl_c_while_the_model_is_silent_aborts_at_the_second_time() {
    let dir = TestDir::new();
    let model = model(vec![Turn::Silence]).await;
    dir.ask(&model);
    dir.write("agent.toml", CALCULATOR);
    let mut running = dir.start(&["run", "agent.toml", "Hello?"]);
    model.arrived().await;
    running.signal(Signal::INT);
    let mut lines = BufReader::new(running.child.stderr.take().unwrap()).lines();
    wait_for_line(&mut lines, "interrupting").await;
    running.signal(Signal::INT);
    wait_for_line(&mut lines, "aborted in").await;
    let done = tokio::time::timeout(Duration::from_secs(20), running.end()).await.unwrap();
    assert_eq!((done.code, &*done.stdout), (4, ""), "{done:?}");
}

#[tokio::test]
async fn an_exceeded_budget_is_reported_with_a_hint() {
    let dir = TestDir::new();
    let server =
        model(vec![Turn::call("calculate", json!({ "expression": "1 + 1" })), Turn::Text("Two.")])
            .await;
    dir.ask(&server);
    let file = |tokens: u32| {
        let head = "name = \"a\"\nprompt = \"b\"\n[tools.calculator]\n";
        dir.write("agent.toml", format!("{head}[limits]\ntokens = {tokens}\n"));
    };
    file(10);
    let done = dir.helix(&["run", "agent.toml", "How much?"]).await;
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("(after raising `limits` in the agent file)"), "{done:?}");
    file(1000);
    let resumed = dir.helix(&["resume", "--last"]).await;
    assert!(resumed.code == 0 && resumed.stdout.contains("Two."), "{resumed:?}");
}
