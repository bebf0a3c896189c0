//! Tests of `kill -9` at any moment and `resume`.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use crate::support::TestDir;

/// The approximate duration of a scripted demo with a pace of 10 ms.
const DEMO_MS: u64 = 3_200;

/// A pseudo-random moment that is the same for the same seed.
fn moment(seed: u64) -> Duration {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 31;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 29;
    Duration::from_millis(x % DEMO_MS)
}

/// The calls that have a result in the log.
fn finished(events: &[Value]) -> Vec<&str> {
    let finishes = events.iter().filter_map(|event| event["event"].get("tool_finished"));
    finishes.map(|finish| finish["call"].as_str().unwrap()).collect()
}

/// The idempotency keys of every execution, by call.
fn executions(dir: &TestDir) -> BTreeMap<String, Vec<String>> {
    let trace = std::fs::read_to_string(dir.path("trace.jsonl")).unwrap_or_default();
    let mut executions = BTreeMap::<_, Vec<_>>::new();
    for line in trace.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let of = |member: &str| line[member].as_str().unwrap().to_owned();
        executions.entry(of("call")).or_default().push(of("key"));
    }
    executions
}

async fn kill_and_resume(seed: u64) {
    let dir = TestDir::new();
    let mut demo = dir.start_demo("10", &["--trace", "trace.jsonl"]).await;
    tokio::time::sleep(moment(seed)).await;
    demo.child.kill().await.unwrap();
    let before = dir.log(&demo.session).await;

    let resumed = dir.helix(&["resume", "--last", "--json"]).await;
    assert_eq!((resumed.code, &resumed.json()["status"]), (0, &"completed".into()), "seed {seed}");

    let after = dir.log(&demo.session).await;
    assert_eq!(after[..before.len()], before, "seed {seed}: the log was rewritten");
    let (recorded, executions) = (finished(&before), executions(&dir));
    for (call, keys) in &executions {
        let most = if recorded.contains(&&**call) { 1 } else { 2 };
        assert!(keys.len() <= most, "seed {seed}: {call} ran {} times", keys.len());
        assert!(keys.iter().all(|key| *key == keys[0]), "seed {seed}: {keys:?}");
    }
    let calls: Vec<_> = executions.keys().map(String::as_str).collect();
    assert_eq!(calls, ["1.0", "1.1", "2.0", "2.1", "2.2", "3.0", "4.0"], "seed {seed}");
    assert_eq!(finished(&after).len(), 8, "seed {seed}: seven tools and the report");
}

#[tokio::test]
async fn killed_anywhere_a_session_is_resumed_without_repeating_what_was_recorded() {
    join_all((1..=5).map(kill_and_resume)).await;
}

#[tokio::test]
async fn killed_in_a_tool_the_tool_runs_again_with_the_same_key() {
    let dir = TestDir::new();
    let mut demo = dir.start_demo("40", &["--trace", "trace.jsonl"]).await;
    demo.shows("→ look_up {\"name\":\"Callisto\"}").await;
    demo.child.kill().await.unwrap();
    let before = dir.log(&demo.session).await;
    assert_eq!(finished(&before), ["1.0", "1.1"]);
    assert_eq!(dir.helix(&["resume", "--last", "--json"]).await.code, 0);
    let executions = executions(&dir);
    for (call, times) in [("1.0", 1), ("1.1", 1), ("2.0", 2), ("2.1", 2), ("2.2", 2), ("3.0", 1)] {
        assert_eq!(executions[call].len(), times, "{call}");
    }
}

#[tokio::test]
async fn killed_twice_a_session_is_resumed_twice() {
    let dir = TestDir::new();
    let mut demo = dir.start_demo("10", &["--trace", "trace.jsonl"]).await;
    demo.shows("step 1 completed").await;
    demo.child.kill().await.unwrap();
    let mut resumed = dir.start(&["resume", "--last"]);
    resumed.shows("step 3 completed").await;
    resumed.child.kill().await.unwrap();
    let result = dir.helix(&["resume", "--last", "--json"]).await.json();
    assert_eq!((&result["status"], &result["runs"]), (&"completed".into(), &3.into()));
    assert_eq!((&result["steps"], &result["tool_calls"]), (&5.into(), &7.into()));
}

#[tokio::test]
async fn killed_and_resumed_by_many_a_session_is_resumed_by_one() {
    let dir = TestDir::new();
    let mut demo = dir.start_demo("10", &["--trace", "trace.jsonl"]).await;
    demo.shows("step 2 completed").await;
    demo.child.kill().await.unwrap();
    let resume = ["resume", &demo.session, "--json"];
    let all = join_all((0..4).map(|_| dir.helix(&resume))).await;
    let (won, lost): (Vec<_>, Vec<_>) = all.into_iter().partition(|done| done.code == 0);
    assert_eq!((won.len(), lost.len()), (1, 3), "{won:?} {lost:?}");
    for done in lost {
        let code = done.json_error()["code"].clone();
        assert!(code == "already_running" || code == "already_resumed", "{done:?}");
    }
    let result = won[0].json();
    assert_eq!((&result["status"], &result["runs"]), (&"completed".into(), &2.into()));
}
