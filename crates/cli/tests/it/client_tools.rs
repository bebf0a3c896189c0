//! Tests of sessions of other programs: `helix` answers their calls without knowing their agents.

use std::time::Duration;

use helix_agents::prelude::*;
use helix_agents::providers::ModelServerOptions;
use helix_agents_test::{Reply, ScriptedLlm};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::TestDir;
use crate::support::server::{Turn, model};

const SESSION: &str = "order";

/// Runs a program whose agent calls a client tool, until it is suspended.
async fn program(dir: &TestDir, deadline: Option<Duration>) {
    let word = json!({ "type": "object", "required": ["word"], "properties": { "word": { "type": "string" } } });
    let ask = Tool::client_dynamic("ask", "Asks the customer.", word);
    let ask = ask.output_schema::<std::collections::BTreeMap<String, u32>>();
    let ask = match deadline {
        Some(deadline) => ask.deadline(deadline),
        None => ask,
    };
    let agent = Agent::builder("clerk").system_prompt("You ask.").tool(ask).build().unwrap();
    let model = ScriptedLlm::new([Reply::tool_call("ask", json!({ "word": "how many?" }))]);
    let store = SqliteStore::open(dir.path("helix.db")).await.unwrap();
    let runtime = LocalRuntime::builder().store(store.clone()).llm(model).build().unwrap();
    let options = ExecuteOptions::default().session(SESSION);
    let handle = runtime.start(&agent, "Ask.", options).await.unwrap();
    assert!(handle.result().await.unwrap().status.is_suspended());
    store.close().await;
}

async fn refused(dir: &TestDir, args: &[&str]) -> Value {
    let done = dir.helix(&[&["approvals"], args, &["--json"]].concat()).await;
    assert_eq!(done.code, 1, "{done:?}");
    done.json_error()
}

#[tokio::test]
async fn the_result_of_a_client_tool_is_submitted_on_the_command_line() {
    let dir = TestDir::new();
    program(&dir, None).await;
    let shown = dir.helix(&["approvals", "show", "order#1.0"]).await.stdout;
    for expected in [
        "waits    for a result",
        "  \"word\": \"how many?\"",
        "result schema:",
        "answer   helix approvals answer 'order#1.0' --result JSON",
    ] {
        assert!(shown.contains(expected), "{expected} is not in {shown}");
    }
    let wrong = ["answer", "order#1.0", "--result", r#"{"bicycles":"two"}"#];
    let error = refused(&dir, &wrong).await;
    assert_eq!(error["code"], "answer_invalid");
    assert!(error["message"].as_str().unwrap().contains("at /*: a string of 3 bytes"), "{error}");
    assert!(!shown.contains("helix resume"), "{shown}");
    assert_eq!(refused(&dir, &["approve", "order#1.0"]).await["code"], "answer_wrong_kind");
    assert_eq!(refused(&dir, &["edit", "order#1.0"]).await["code"], "answer_invalid");
    // Nothing is recorded if the session cannot be resumed as requested.
    let at_once = ["answer", "order#1.0", "--result", r#"{"bicycles":2}"#, "--resume"];
    assert_eq!(refused(&dir, &at_once).await["code"], "agent_not_found");
    let shown = dir.helix(&["resume", SESSION]).await;
    assert!(shown.stdout.contains("resume   with the program that created"), "{shown:?}");
    assert!(shown.stdout.contains("model    scripted"), "{shown:?}");
    // One of `--result` and `--error` is required.
    assert_eq!(dir.helix(&["approvals", "answer", "order#1.0"]).await.code, 2);

    let right = ["approvals", "answer", "order#1.0", "--result", r#"{"bicycles":2}"#, "--json"];
    let done = dir.helix(&right).await.json();
    assert_eq!((&done["answer"], &done["root"]), (&"answered".into(), &"order".into()));
    assert_eq!(done["resume_command"], json!(null));
    assert_eq!(
        refused(&dir, &["answer", "order#1.0", "--error", "no"]).await["code"],
        "already_answered"
    );
    let log = dir.log(SESSION).await;
    let last = log.last().unwrap().to_string();
    assert!(last.contains("submitted") && last.contains(r#""bicycles":2"#), "{last}");
    // Only the other program knows the agent.
    let resumed = dir.helix(&["resume", SESSION, "--json"]).await;
    assert_eq!((resumed.code, &resumed.json_error()["code"]), (1, &"agent_not_found".into()));
    let aborted = dir.helix(&["abort", SESSION]).await;
    assert_eq!(aborted.code, 1);
    assert!(aborted.stderr.contains("resume or abort it with that program"), "{aborted:?}");
}

#[tokio::test]
async fn a_client_tool_can_fail() {
    let dir = TestDir::new();
    program(&dir, None).await;
    let done = dir.helix(&["approvals", "answer", "order#1.0", "--error", "no one is there"]).await;
    assert_eq!(
        (done.code, &*done.stdout),
        (0, "order#1.0: failed\nresume   with the program that created the session\n")
    );
    let log = dir.helix(&["sessions", "log", SESSION]).await;
    assert!(log.stdout.contains("submitted 1.0 error no one is there"), "{log:?}");
}

#[tokio::test]
async fn an_expired_call_cannot_be_answered() {
    let dir = TestDir::new();
    program(&dir, Some(Duration::from_millis(1))).await;
    let listed = dir.helix(&["approvals", "list", "--json"]).await.json();
    assert_eq!(listed[0]["expired"], true);
    assert!(listed[0]["deadline"].is_number());
    let list = dir.helix(&["approvals", "list"]).await;
    assert!(list.stdout.contains(" (passed)  {\"word\""), "{list:?}");
    let shown = dir.helix(&["approvals", "show", "order#1.0"]).await;
    assert!(shown.stdout.contains("(passed: the call can no longer be answered)"), "{shown:?}");
    assert!(!shown.stdout.contains("approvals answer"), "{shown:?}");
    let late = ["answer", "order#1.0", "--result", r#"{"bicycles":2}"#];
    assert_eq!(refused(&dir, &late).await["code"], "answer_expired");
}

#[tokio::test]
async fn an_answer_does_not_change_the_session_of_an_active_run() {
    let dir = TestDir::new();
    let demo = dir.start_demo("2000", &[]).await;
    let call = format!("{}#1.0", demo.session);
    assert_eq!(refused(&dir, &["approve", &call]).await["code"], "call_not_found");
    demo.signal(Signal::KILL);
    demo.end().await;
}

#[tokio::test]
async fn the_list_has_the_model_of_the_first_reply() {
    let dir = TestDir::new();
    let server = model(vec![Turn::Text("Hello.")]).await;
    dir.ask(&server);
    let store = SqliteStore::open(dir.path("helix.db")).await.unwrap();
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    let models =
        ProviderRegistry::new().with_provider(ModelServerOptions::new("mine", &url)).unwrap();
    let agent = Agent::builder("clerk").system_prompt("You greet.").model("mine:small");
    let runtime = LocalRuntime::builder().store(store.clone()).llm(models).build().unwrap();
    runtime.run(&agent.build().unwrap(), "Hello?").await.unwrap();
    store.close().await;
    program(&dir, None).await;
    let list = dir.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!((&list[0]["model"], &list[1]["model"]), (&"scripted".into(), &"small".into()));
    let list = dir.helix(&["sessions", "list"]).await.stdout;
    assert!(list.lines().nth(2).unwrap().ends_with("  small"), "{list}");
}
