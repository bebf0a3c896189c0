//! `helix demo`.

use serde_json::Value;

use crate::support::TestDir;

#[tokio::test]
async fn a_scripted_demo_completes_with_a_report() {
    let dir = TestDir::new();
    let done = dir.helix(&["demo", "--scripted", "--pace", "0", "--json"]).await;
    let result = done.json();
    assert_eq!(done.code, 0);
    assert_eq!(
        (&result["status"], &result["model"], &result["scripted"]),
        (&"completed".into(), &"script".into(), &true.into())
    );
    assert_eq!((&result["steps"], &result["tool_calls"]), (&5.into(), &7.into()));
    let facts = result["output"]["facts"].as_array().unwrap();
    assert!(facts.iter().any(|fact| fact["body"] == "Ganymede"), "{facts:?}");
    assert!(result["took_ms"].is_u64() && result["usage"].is_object(), "{result}");
}

#[tokio::test]
async fn the_text_output_has_everything_needed_to_continue() {
    let dir = TestDir::new();
    let done = dir.helix(&["demo", "--scripted", "--pace", "0", "--db", "my demo.db"]).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));
    let log = done.stdout.lines().find_map(|line| line.strip_prefix("log      ")).unwrap();
    let session = log.split(' ').nth(3).unwrap();
    assert_eq!(log, format!("helix sessions log {session} --db 'my demo.db'"));
    for message in [
        "model    script (built-in script, no model)",
        "Which moons of the Solar System",
        "To compare the moons with Mercury",
        "→ look_up {\"name\":\"Titan\"}",
        "✓ look_up",
        "Answer:   Two moons are larger than Mercury",
        "- Titan: Moon of Saturn",
        "completed in",
        "tokens   none",
        session,
    ] {
        assert!(done.stdout.contains(message), "{message} is not in {}", done.stdout);
    }
}

#[tokio::test]
async fn every_execution_of_a_tool_leaves_a_line() {
    let dir = TestDir::new();
    let trace = ["demo", "--scripted", "--pace", "0", "--trace", "trace.jsonl", "--json"];
    let session = dir.helix(&trace).await.json()["session"].clone();
    let text = std::fs::read_to_string(dir.path("trace.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: Vec<_> = lines.iter().map(|line| line["call"].as_str().unwrap()).collect();
    assert_eq!(calls, ["1.0", "1.1", "2.0", "2.1", "2.2", "3.0", "4.0"]);
    for line in lines {
        assert_eq!((&line["session"], &line["attempt"]), (&session, &1.into()));
        let call = line["call"].as_str().unwrap();
        assert_eq!(line["step"].to_string(), call.split('.').next().unwrap());
        let key = line["key"].as_str().unwrap();
        assert!(key.contains(call) && key.contains(line["tool"].as_str().unwrap()), "{key}");
    }
}

#[tokio::test]
async fn an_unwritable_trace_file_is_an_error_before_the_start() {
    let dir = TestDir::new();
    let done = dir.helix(&["demo", "--scripted", "--trace", "no/such/folder", "--json"]).await;
    let error = done.json_error();
    assert_eq!((done.code, &error["code"]), (1, &"input_invalid".into()));
    assert_eq!(error["context"]["trace"], "no/such/folder");
    assert!(!dir.path("helix.db").exists());
}

#[tokio::test]
async fn an_unknown_model_is_an_error_and_not_the_script() {
    let dir = TestDir::new();
    let done = dir.helix(&["demo", "--model", "nobody:model", "--json"]).await;
    assert_eq!((done.code, &done.json_error()["code"]), (1, &"model_unknown".into()));

    let mut command = dir.command(&["demo", "--json"]);
    let output = command.env("HELIX_MODEL", "nobody:model").output().await.unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("model_unknown"));
    assert!(!dir.path("helix.db").exists());
}

#[tokio::test]
async fn the_failure_of_a_configured_model_fails_the_run() {
    let dir = TestDir::new();
    // No server listens on the port of the discard service.
    let config = "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"small\"\n";
    std::fs::write(dir.path("helix.toml"), config).unwrap();
    let done = dir.helix(&["demo", "--json"]).await;
    let result = done.json();
    assert_eq!((done.code, &result["status"]), (1, &"failed".into()));
    assert_eq!(
        (&result["model"], &result["error"]["code"]),
        (&"mine:small".into(), &"provider_unavailable".into())
    );
}
