//! Sessions of programs, whose calls `helix` answers although it knows nothing of their agents.

use std::time::Duration;

use helix_agents::prelude::*;
use helix_agents::providers::OpenAiChatOptions;
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::Place;
use crate::support::server::{Turn, model};

const SESSION: &str = "order";

/// What a program does: it asks, and ends as soon as it has to wait.
async fn program(place: &Place, deadline: Option<Duration>) {
    let word = json!({ "type": "object", "required": ["word"], "properties": { "word": { "type": "string" } } });
    let ask = Tool::client_dynamic("ask", "Asks the customer.", word);
    let ask = ask.output_schema::<std::collections::BTreeMap<String, u32>>();
    let ask = match deadline {
        Some(deadline) => ask.deadline(deadline),
        None => ask,
    };
    let agent = Agent::builder("clerk").system_prompt("You ask.").tool(ask).build().unwrap();
    let model = ScriptedLlm::new([Reply::tool_call("ask", json!({ "word": "how many?" }))]);
    let store = SqliteStore::open(place.path("helix.db")).await.unwrap();
    let runtime = LocalRuntime::builder().store(store.clone()).llm(model).build().unwrap();
    let options = ExecuteOptions::default().session(SESSION);
    let handle = runtime.start(&agent, "Ask.", options).await.unwrap();
    assert!(handle.result().await.unwrap().status.is_suspended());
    store.close().await;
}

async fn refused(place: &Place, args: &[&str]) -> Value {
    let done = place.helix(&[&["approvals"], args, &["--json"]].concat()).await;
    assert_eq!(done.code, 1, "{done:?}");
    done.json_error()
}

#[tokio::test]
async fn a_client_tool_gets_its_result_from_the_command_line() {
    let place = Place::new();
    program(&place, None).await;
    let shown = place.helix(&["approvals", "show", "order#1.0"]).await.stdout;
    for told in [
        "waits    for its result",
        "  \"word\": \"how many?\"",
        "the result has to fit:",
        "answer   helix approvals answer 'order#1.0' --result JSON",
    ] {
        assert!(shown.contains(told), "{told} is not in {shown}");
    }
    let wrong = ["answer", "order#1.0", "--result", r#"{"bicycles":"two"}"#];
    let error = refused(&place, &wrong).await;
    assert_eq!(error["code"], "answer_invalid");
    assert!(error["message"].as_str().unwrap().contains("at /*: a string of 3 bytes"), "{error}");
    assert!(!shown.contains("helix resume"), "{shown}");
    assert_eq!(refused(&place, &["approve", "order#1.0"]).await["code"], "answer_wrong_kind");
    assert_eq!(refused(&place, &["edit", "order#1.0"]).await["code"], "answer_invalid");
    // Nothing is recorded that could not be gone on with as it was wished.
    let at_once = ["answer", "order#1.0", "--result", r#"{"bicycles":2}"#, "--resume"];
    assert_eq!(refused(&place, &at_once).await["code"], "agent_not_found");
    let shown = place.helix(&["resume", SESSION]).await;
    assert!(shown.stdout.contains("go on    in the program that began"), "{shown:?}");
    assert!(shown.stdout.contains("model    scripted"), "{shown:?}");
    // One of the two has to be said.
    assert_eq!(place.helix(&["approvals", "answer", "order#1.0"]).await.code, 2);

    let right = ["approvals", "answer", "order#1.0", "--result", r#"{"bicycles":2}"#, "--json"];
    let done = place.helix(&right).await.json();
    assert_eq!((&done["answer"], &done["root"]), (&"answered".into(), &"order".into()));
    assert_eq!(done["resume_command"], json!(null));
    assert_eq!(
        refused(&place, &["answer", "order#1.0", "--error", "no"]).await["code"],
        "already_answered"
    );
    let log = place.log(SESSION).await;
    let last = log.last().unwrap().to_string();
    assert!(last.contains("submitted") && last.contains(r#""bicycles":2"#), "{last}");
    // Whose agent it is only that program knows.
    let resumed = place.helix(&["resume", SESSION, "--json"]).await;
    assert_eq!((resumed.code, &resumed.json_error()["code"]), (1, &"agent_not_found".into()));
    let aborted = place.helix(&["abort", SESSION]).await;
    assert_eq!(aborted.code, 1);
    assert!(aborted.stderr.contains("in the program that began it"), "{aborted:?}");
}

#[tokio::test]
async fn a_client_tool_can_fail() {
    let place = Place::new();
    program(&place, None).await;
    let done =
        place.helix(&["approvals", "answer", "order#1.0", "--error", "no one is there"]).await;
    assert_eq!(
        (done.code, &*done.stdout),
        (0, "failed: order#1.0\ngo on    in the program that began the session\n")
    );
    let log = place.helix(&["sessions", "log", SESSION]).await;
    assert!(log.stdout.contains("submitted 1.0 error no one is there"), "{log:?}");
}

#[tokio::test]
async fn what_is_overdue_is_told_so_and_takes_no_answer() {
    let place = Place::new();
    program(&place, Some(Duration::from_millis(1))).await;
    let listed = place.helix(&["approvals", "list", "--json"]).await.json();
    assert_eq!(listed[0]["expired"], true);
    assert!(listed[0]["deadline"].is_number());
    let list = place.helix(&["approvals", "list"]).await;
    assert!(list.stdout.contains(" (passed)  {\"word\""), "{list:?}");
    let shown = place.helix(&["approvals", "show", "order#1.0"]).await;
    assert!(shown.stdout.contains("(passed: it cannot be answered any more)"), "{shown:?}");
    assert!(!shown.stdout.contains("approvals answer"), "{shown:?}");
    let late = ["answer", "order#1.0", "--result", r#"{"bicycles":2}"#];
    assert_eq!(refused(&place, &late).await["code"], "answer_expired");
}

#[tokio::test]
async fn an_answer_does_not_touch_the_session_of_a_live_run() {
    let place = Place::new();
    let demo = place.start_demo("2000", &[]).await;
    let call = format!("{}#1.0", demo.session);
    assert_eq!(refused(&place, &["approve", &call]).await["code"], "call_not_found");
    demo.signal(Signal::KILL);
    demo.end().await;
}

#[tokio::test]
async fn the_list_has_the_model_of_a_program_that_answered() {
    let place = Place::new();
    let server = model(vec![Turn::Text("Hello.")]).await;
    place.ask(&server);
    let store = SqliteStore::open(place.path("helix.db")).await.unwrap();
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    let models =
        ProviderRegistry::new().with_provider(OpenAiChatOptions::new("mine", &url)).unwrap();
    let agent = Agent::builder("clerk").system_prompt("You greet.").model("mine:small");
    let runtime = LocalRuntime::builder().store(store.clone()).llm(models).build().unwrap();
    runtime.run(&agent.build().unwrap(), "Hello?").await.unwrap();
    store.close().await;
    program(&place, None).await;
    let list = place.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!((&list[0]["model"], &list[1]["model"]), (&"scripted".into(), &"small".into()));
    let list = place.helix(&["sessions", "list"]).await.stdout;
    assert!(list.lines().nth(2).unwrap().ends_with("  small"), "{list}");
}
