//! Sessions with sub-agents, as `helix tail` shows them.

use expect_test::expect;
use helix_agents::prelude::*;
use helix_agents::tool::NoInput;
use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm};
use serde_json::json;

use crate::support::TestDir;

/// Runs an agent with a sub-agent that has a sub-agent of its own.
async fn program(dir: &TestDir) {
    let note =
        Tool::function("note", "Notes.", |_: NoInput, _| async move { Ok::<_, ToolError>("x") });
    let scout = Agent::builder("scout").description("Looks.").system_prompt("You look.").tool(note);
    let scout = scout.output::<u32>().build().unwrap();
    let guide = Agent::builder("guide").description("Leads.").system_prompt("You lead.");
    let guide = guide.sub_agent(&scout).output::<u32>().build().unwrap();
    let boss = Agent::builder("boss").system_prompt("You ask.").sub_agent(&guide).build().unwrap();
    let ask = |name: &str| Reply::tool_call(name, json!({ "message": "go" }));
    let model = RoutingScriptedLlm::new()
        .agent("boss", ScriptedLlm::new([ask("subagent__guide"), Reply::text("Seen.")]))
        .agent(
            "guide",
            ScriptedLlm::new([
                ask("subagent__scout").with_text("Left,\nthen right."),
                Reply::finish(json!({ "output": 7 })),
            ]),
        )
        .agent(
            "scout",
            ScriptedLlm::new([
                Reply::tool_call("note", json!({})),
                Reply::finish(json!({ "output": 8 })),
            ]),
        );
    let store = SqliteStore::open(dir.path("helix.db")).await.unwrap();
    let runtime = LocalRuntime::builder().store(store.clone()).llm(model).build().unwrap();
    let options = ExecuteOptions::default().session("trip");
    let handle = runtime.start(&boss, "Go.", options).await.unwrap();
    assert_eq!(handle.result().await.unwrap().status, RunStatus::Completed);
    store.close().await;
}

/// Removes durations and run ids, which differ between runs.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    for line in text.lines() {
        let mut kept = Vec::new();
        let mut words = line.split(' ');
        while let Some(word) = words.next() {
            if word.starts_with('(') {
                // A duration has two words.
                words.next();
                continue;
            }
            kept.push(word);
            if word == "run" {
                words.next();
            }
        }
        steady.push_str(&kept.join(" "));
        steady.push('\n');
    }
    steady
}

#[tokio::test]
async fn sub_agents_are_indented_and_named() {
    let dir = TestDir::new();
    program(&dir).await;
    let tail = dir.helix(&["tail", "trip"]).await;
    assert_eq!(tail.code, 0, "{tail:?}");
    expect![[r#"
        run started
          → guide starts as trip-sub-1.0
            [guide 1.0] run started
            [guide 1.0] Left,
            [guide 1.0] then right.
            [guide 1.0]   → scout starts as trip-sub-1.0-sub-1.0
              [scout 1.0] run started
              [scout 1.0]   → note {}
              [scout 1.0]   ✓ note "x"
              [scout 1.0] step 1 completed; checkpoint at 6
              [scout 1.0] step 2 completed; checkpoint at 9
              [scout 1.0] 8
              [scout 1.0] run completed
            [guide 1.0]   ✓ scout completed
            [guide 1.0]   ✓ subagent__scout 8
            [guide 1.0] step 1 completed; checkpoint at 7
            [guide 1.0] step 2 completed; checkpoint at 10
            [guide 1.0] 7
            [guide 1.0] run completed
          ✓ guide completed
          ✓ subagent__guide 7
        step 1 completed; checkpoint at 7
        Seen.
        step 2 completed; checkpoint at 9
        "Seen."
        run completed
    "#]]
    .assert_eq(&steady(&tail.stdout));
}

#[tokio::test]
async fn sub_agents_are_named_when_a_tail_starts_in_the_middle() {
    let dir = TestDir::new();
    program(&dir).await;
    let chunks = dir.helix(&["tail", "trip", "--json"]).await.json_lines();
    let found =
        chunks.iter().find(|chunk| chunk["agent"] == "scout" && chunk["type"] == "tool_end");
    let from = found.unwrap()["seq"].to_string();
    let tail = dir.helix(&["tail", "trip", "--from", &from]).await;
    assert!(tail.stdout.starts_with("      [scout 1.0]   ✓ note "), "{}", tail.stdout);
}

#[tokio::test]
async fn the_last_session_is_a_root_session() {
    let dir = TestDir::new();
    program(&dir).await;
    let list = dir.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!(list[0]["session"], "trip-sub-1.0-sub-1.0");
    let shown = dir.helix(&["sessions", "show", "--last", "--json"]).await.json();
    assert_eq!(shown["session"], "trip");
    let log = dir.helix(&["sessions", "log", "--last"]).await.stdout;
    assert!(log.contains("child_started 1.0 guide as trip-sub-1.0"), "{log}");
    assert!(log.contains("tool_finished 1.0 7"), "{log}");
}
