//! Sessions of programs whose agents call upon others, as `helix tail` shows them.

use expect_test::expect;
use helix_agents::prelude::*;
use helix_agents_testkit::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};
use serde_json::json;

use crate::support::Place;

/// A program whose agent calls upon two others, one within the other.
async fn program(place: &Place) {
    let note = Tool::function("note", "Notes.", |(): (), _| async move { Ok::<_, ToolError>("x") });
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
                Reply::tool_call("note", json!(null)),
                Reply::finish(json!({ "output": 8 })),
            ]),
        );
    let store = SqliteStore::open(place.path("helix.db")).await.unwrap();
    let runtime = LocalRuntime::builder().store(store.clone()).llm(model).build().unwrap();
    let options = ExecuteOptions::default().session("trip");
    let handle = runtime.start(&boss, "Go.", options).await.unwrap();
    assert_eq!(handle.result().await.unwrap().status, RunStatus::Completed);
    store.close().await;
}

/// Without what differs from run to run: times and the ids of runs.
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
async fn children_stand_further_in_and_are_named() {
    let place = Place::new();
    program(&place).await;
    let tail = place.helix(&["tail", "trip"]).await;
    assert_eq!(tail.code, 0, "{tail:?}");
    expect![[r#"
        run began
          → guide begins as trip-sub-1.0
            [guide 1.0] run began
            [guide 1.0] Left,
            [guide 1.0] then right.
            [guide 1.0]   → scout begins as trip-sub-1.0-sub-1.0
              [scout 1.0] run began
              [scout 1.0]   → note null
              [scout 1.0]   ✓ note "x"
              [scout 1.0] step 1 is done; checkpoint at 6
              [scout 1.0] step 2 is done; checkpoint at 9
              [scout 1.0] 8
              [scout 1.0] run completed
            [guide 1.0]   ✓ scout is done
            [guide 1.0]   ✓ subagent__scout 8
            [guide 1.0] step 1 is done; checkpoint at 7
            [guide 1.0] step 2 is done; checkpoint at 10
            [guide 1.0] 7
            [guide 1.0] run completed
          ✓ guide is done
          ✓ subagent__guide 7
        step 1 is done; checkpoint at 7
        Seen.
        step 2 is done; checkpoint at 9
        "Seen."
        run completed
    "#]]
    .assert_eq(&steady(&tail.stdout));
}

#[tokio::test]
async fn of_one_child_only_what_comes_from_there_on_is_named_just_as_well() {
    let place = Place::new();
    program(&place).await;
    let chunks = place.helix(&["tail", "trip", "--json"]).await.json_lines();
    let found = chunks.iter().find(|it| it["agent"] == "scout" && it["type"] == "tool_end");
    let from = found.unwrap()["seq"].to_string();
    let tail = place.helix(&["tail", "trip", "--from", &from]).await;
    assert!(tail.stdout.starts_with("      [scout 1.0]   ✓ note "), "{}", tail.stdout);
}

#[tokio::test]
async fn the_last_session_is_the_one_that_people_began() {
    let place = Place::new();
    program(&place).await;
    let list = place.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!(list[0]["session"], "trip-sub-1.0-sub-1.0");
    let shown = place.helix(&["sessions", "show", "--last", "--json"]).await.json();
    assert_eq!(shown["session"], "trip");
    let log = place.helix(&["sessions", "log", "--last"]).await.stdout;
    assert!(log.contains("child_started 1.0 guide as trip-sub-1.0"), "{log}");
    assert!(log.contains("tool_finished 1.0 7"), "{log}");
}
