//! `helix run`, against a model that says what it is told to.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::Place;
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
async fn an_agent_file_and_a_prompt_make_an_answer() {
    let place = Place::new();
    let model = model(vec![
        Turn::call("calculate", json!({ "expression": "6 * 7" })),
        Turn::Text("It is 42."),
    ])
    .await;
    place.ask(&model);
    place.write("agent.toml", CALCULATOR);
    let done = place.helix(&["run", "agent.toml", "What is six times seven?"]).await;
    // Nothing but the answer is in a pipe.
    assert_eq!((done.code, &*done.stdout), (0, "It is 42.\n"), "{done:?}");
    for told in [
        "agent    reckoner",
        "model    mine:small",
        "→ calculate {\"expression\":\"6 * 7\"}",
        "{\"value\":42}",
        "completed in",
        "tokens   20 in",
    ] {
        assert!(done.stderr.contains(told), "{told} is not in {}", done.stderr);
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
    let place = Place::new();
    let model = model(vec![Turn::finish(json!({ "sum": 42 }))]).await;
    place.ask(&model);
    place.write("agent.toml", TYPED);
    let done = place.helix(&["run", "agent.toml", "Compute.", "--json"]).await;
    let result = done.json();
    assert_eq!((done.code, &result["status"]), (0, &"completed".into()));
    assert_eq!(result["output"], json!({ "sum": 42 }));
    assert_eq!((&result["model"], &result["scripted"]), (&"mine:small".into(), &false.into()));

    let people = place.helix(&["run", "agent.toml", "Compute."]).await;
    assert_eq!(people.stdout, "{\n  \"sum\": 42\n}\n", "{people:?}");
}

#[tokio::test]
async fn what_looks_like_the_demos_report_is_not_told_as_one_and_needs_nothing_to_be_shown() {
    let place = Place::new();
    let fact = json!({ "body": "Titan", "statement": "It is large." });
    let report = json!({ "question": "Which?", "answer": "Titan.", "facts": [fact] });
    let model = model(vec![Turn::finish(report.clone())]).await;
    place.ask(&model);
    let typed = "name = \"reckoner\"\nprompt = \"x\"\n[output.schema]\ntype = \"object\"\n";
    place.write("agent.toml", typed);
    let done = place.helix(&["run", "agent.toml", "Compute."]).await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&done.stdout).unwrap(), report);

    // The session has ended: its agent and its model are not needed any more.
    std::fs::remove_file(place.path("agent.toml")).unwrap();
    std::fs::remove_file(place.path("helix.toml")).unwrap();
    let shown = place.helix(&["resume", "--last"]).await;
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.stdout.contains("\"answer\": \"Titan.\""), "{shown:?}");
    assert!(!shown.stdout.contains("Report"), "{shown:?}");
}

#[tokio::test]
async fn an_answer_of_another_form_fails_after_the_corrections() {
    let place = Place::new();
    let model = model(vec![Turn::finish(json!({ "sum": "many" })); 4]).await;
    place.ask(&model);
    place.write("agent.toml", TYPED);
    let done = place.helix(&["run", "agent.toml", "Compute.", "--json"]).await;
    let result = done.json();
    assert_eq!((done.code, &result["error"]["code"]), (1, &"output_invalid".into()), "{result}");
    let detail = result["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("at /sum: \"many\" is not of type"), "{detail}");
}

#[tokio::test]
async fn the_prompt_may_come_from_standard_input() {
    for args in [&["run", "agent.toml", "-", "--json"][..], &["run", "agent.toml", "--json"]] {
        let place = Place::new();
        let model = model(vec![Turn::Text("Fine.")]).await;
        place.ask(&model);
        place.write("agent.toml", CALCULATOR);
        let mut command = place.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all("How are you?\n".as_bytes()).await.unwrap();
        assert_eq!(child.wait_with_output().await.unwrap().status.code(), Some(0));
        assert_eq!(model.requests()[0].json()["messages"][1]["content"], "How are you?\n");
    }
}

#[tokio::test]
async fn without_a_prompt_nothing_is_begun() {
    let place = Place::new();
    place.write("agent.toml", CALCULATOR);
    let done = place.helix(&["run", "agent.toml", "--json"]).await;
    let error = done.json_error();
    assert_eq!((done.code, &error["code"]), (2, &"usage".into()));
    assert!(error["message"].as_str().unwrap().contains("on standard input"), "{error}");
    assert!(!place.path("helix.db").exists());
}

#[tokio::test]
async fn a_session_goes_on_with_a_further_turn() {
    let place = Place::new();
    let model = model(vec![
        Turn::call("note", json!({ "action": "write", "title": "name", "text": "Ada" })),
        Turn::Text("Hello, Ada."),
        Turn::Text("You are Ada."),
    ])
    .await;
    place.ask(&model);
    place.write("agent.toml", "name = \"host\"\nprompt = \"Be kind.\"\n[tools.note]\n");
    let first = place.helix(&["run", "agent.toml", "I am Ada.", "--json"]).await.json();
    let session = first["session"].as_str().unwrap();
    let further = ["run", "agent.toml", "Who am I?", "--session", session, "--json"];
    let second = place.helix(&further).await.json();
    assert_eq!((&second["session"], &second["output"]), (&session.into(), &"You are Ada.".into()));

    let system = model.requests()[2].json()["messages"][0]["content"].clone();
    assert_eq!(system, "Be kind.\n\nYour notes from this session:\n- name: Ada");
    let shown = place.helix(&["sessions", "show", session]).await.stdout;
    assert!(shown.contains("state    {\"notes\":{\"name\":\"Ada\"}}"), "{shown}");

    for (args, code) in [
        (["run", "agent.toml", "Hi", "--session", "ses_unknown", "--json"], "session_not_found"),
        (["run", "other.toml", "Hi", "--session", session, "--json"], "agent_mismatch"),
    ] {
        place.write("other.toml", CALCULATOR);
        let done = place.helix(&args).await;
        assert_eq!((done.code, &done.json_error()["code"]), (1, &code.into()));
    }
}

#[tokio::test]
async fn a_session_of_the_demo_is_no_files() {
    let (place, session) = Place::after_demo().await;
    place.write("agent.toml", CALCULATOR);
    let done = place.helix(&["run", "agent.toml", "Hi", "--session", &session, "--json"]).await;
    assert_eq!((done.code, &done.json_error()["code"]), (1, &"agent_mismatch".into()));
}

#[tokio::test]
async fn the_model_is_the_one_that_was_asked_for() {
    let place = Place::new();
    let model = model(vec![Turn::Text("Fine.")]).await;
    place.ask(&model);
    place.write("agent.toml", format!("model = \"mine:named\"\n{CALCULATOR}"));
    let run = |more: &[&str]| place.helix(&[&["run", "agent.toml", "Hi", "--json"], more].concat());
    assert_eq!(run(&[]).await.json()["model"], "mine:named");
    assert_eq!(run(&["--model", "mine:other"]).await.json()["model"], "mine:other");
    let script = run(&["--model", "script"]).await;
    assert_eq!((script.code, &script.json_error()["code"]), (1, &"model_unknown".into()));
    let asked: Vec<_> = model.requests().iter().map(|it| it.json()["model"].clone()).collect();
    assert_eq!(asked, ["named", "other"]);
}

/// A model that gets a page which does not come before the process is killed.
async fn killed_in_a_tool() -> (Place, Server, Server) {
    let pages = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let web =
        Server::start(move |_| match pages.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::Hold,
            _ => Reply::text("It rains."),
        })
        .await;
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}/weather", web.port);
    let model = model(vec![
        Turn::call("calculate", json!({ "expression": "1 + 1" })),
        Turn::call("http_get", json!({ "url": url })),
        Turn::Text("Take an umbrella."),
    ])
    .await;
    place.ask(&model);
    let tools = format!("[tools.http]\nhosts = [\"127.0.0.1:{}\"]\n", web.port);
    place.write("agents/agent.toml", format!("{CALCULATOR}{tools}"));
    let running = place.start(&["run", "agents/agent.toml", "An umbrella?"]);
    web.arrived().await;
    running.signal(Signal::KILL);
    assert_eq!(running.end().await.code, -1);
    (place, model, web)
}

#[tokio::test]
async fn killed_in_a_tool_a_session_is_resumed_by_its_agent_file() {
    let (place, model, web) = killed_in_a_tool().await;
    let list = place.helix(&["sessions", "list", "--json"]).await.json();
    let tags = &list[0]["head"]["created"]["tags"];
    let file = place.path("agents/agent.toml").canonicalize().unwrap();
    assert_eq!(tags["agent_file"], file.to_str().unwrap());
    assert_eq!(tags["model"], "mine:small");

    let resumed = place.helix(&["resume", "--last", "--json"]).await;
    let result = resumed.json();
    assert_eq!((resumed.code, &result["output"]), (0, &"Take an umbrella.".into()), "{result}");
    assert_eq!((&result["runs"], &result["tool_calls"]), (&2.into(), &2.into()));
    // The page was asked for once in each process, and the model for each reply once.
    assert_eq!((web.requests().len(), model.requests().len()), (2, 3));
}

#[tokio::test]
async fn killed_and_changed_or_gone_an_agent_file_is_told_of() {
    let (place, _model, _web) = killed_in_a_tool().await;
    let file = place.path("agents/agent.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let gone = place.helix(&["resume", "--last", "--json"]).await;
    let error = gone.json_error();
    assert_eq!((gone.code, &error["code"]), (1, &"input_invalid".into()));
    assert!(error["message"].as_str().unwrap().contains("--agent FILE"), "{error}");

    place.write("other.toml", text.replace("reckoner", "other"));
    let other = place.helix(&["resume", "--last", "--agent", "other.toml", "--json"]).await;
    assert_eq!((other.code, &other.json_error()["code"]), (1, &"agent_mismatch".into()));

    place.write("moved.toml", text.replace("You compute.", "You compute well."));
    let resumed = place.helix(&["resume", "--last", "--agent", "moved.toml"]).await;
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(resumed.stderr.contains("is not as it was"), "{resumed:?}");
    assert!(resumed.stderr.contains("was begun from the agent file"), "{resumed:?}");
    assert!(resumed.stdout.contains("Take an umbrella."), "{resumed:?}");
}

#[tokio::test]
async fn killed_under_one_model_a_session_may_be_finished_by_another() {
    let (place, model, _web) = killed_in_a_tool().await;
    let resume = ["resume", "--last", "--model", "mine:other", "--json"];
    let result = place.helix(&resume).await.json();
    assert_eq!((&result["status"], &result["model"]), (&"completed".into(), &"mine:other".into()));
    assert_eq!(model.requests().last().unwrap().json()["model"], "other");
}

async fn hears(lines: &mut tokio::io::Lines<BufReader<tokio::process::ChildStderr>>, text: &str) {
    while !lines.next_line().await.unwrap().unwrap().contains(text) {}
}

#[tokio::test]
async fn asked_again_while_it_terminates_it_ends_at_once() {
    for again in [Signal::TERM, Signal::INT] {
        let place = Place::new();
        let model = model(vec![Turn::Silence]).await;
        place.ask(&model);
        place.write("agent.toml", CALCULATOR);
        let mut running = place.start(&["run", "agent.toml", "Hello?"]);
        model.arrived().await;
        running.signal(Signal::TERM);
        let mut told = BufReader::new(running.child.stderr.take().unwrap()).lines();
        hears(&mut told, "terminating").await;
        running.signal(again);
        // Otherwise the model would have five seconds.
        let soon = Duration::from_secs(3);
        tokio::time::timeout(soon, hears(&mut told, "stopped; to go on: helix resume"))
            .await
            .unwrap();
        let done = tokio::time::timeout(soon, running.end()).await.unwrap();
        assert_eq!((done.code, &*done.stdout), (4, ""), "{done:?}");
    }
}

#[tokio::test]
async fn ctrl_c_while_the_model_is_silent_aborts_at_the_second_time() {
    let place = Place::new();
    let model = model(vec![Turn::Silence]).await;
    place.ask(&model);
    place.write("agent.toml", CALCULATOR);
    let mut running = place.start(&["run", "agent.toml", "Hello?"]);
    model.arrived().await;
    running.signal(Signal::INT);
    let mut told = BufReader::new(running.child.stderr.take().unwrap()).lines();
    hears(&mut told, "interrupting").await;
    running.signal(Signal::INT);
    hears(&mut told, "aborted in").await;
    let done = tokio::time::timeout(Duration::from_secs(20), running.end()).await.unwrap();
    assert_eq!((done.code, &*done.stdout), (4, ""), "{done:?}");
}

#[tokio::test]
async fn whoever_has_used_up_a_budget_is_told_where_to_raise_it() {
    let place = Place::new();
    let server =
        model(vec![Turn::call("calculate", json!({ "expression": "1 + 1" })), Turn::Text("Two.")])
            .await;
    place.ask(&server);
    let file = |tokens: u32| {
        let head = "name = \"a\"\nprompt = \"b\"\n[tools.calculator]\n";
        place.write("agent.toml", format!("{head}[limits]\ntokens = {tokens}\n"));
    };
    file(10);
    let done = place.helix(&["run", "agent.toml", "How much?"]).await;
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("(with more under `limits` in the agent file)"), "{done:?}");
    file(1000);
    let resumed = place.helix(&["resume", "--last"]).await;
    assert!(resumed.code == 0 && resumed.stdout.contains("Two."), "{resumed:?}");
}
