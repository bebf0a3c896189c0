//! Runs the example as a user would, each command in a separate process.

use std::path::Path;

use helix_agents::prelude::SqliteStore;
use helix_agents::session::load_events;
use tokio::process::Command;

use crate::program::{example, failure, lines};

const BLUE: &str = r#"{"colour": "blue"}"#;

fn client_tools(folder: &Path, words: &[&str]) -> Command {
    let mut command = example(env!("CARGO_BIN_EXE_client-tools"));
    command.args(words).current_dir(folder);
    command
}

/// Returns the result of the question as the model received it.
async fn result(folder: &Path) -> String {
    let store = SqliteStore::open(folder.join("orders.db")).await.unwrap();
    let events = load_events(&store, &"bicycle".into(), 0).await.unwrap();
    store.close().await;
    let finished = events.iter().find(|event| event.event.name() == "tool_finished").unwrap();
    serde_json::to_string(&finished.event).unwrap()
}

#[tokio::test]
async fn only_one_valid_answer_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| client_tools(folder.path(), words);
    assert_eq!(lines(run(&["order"])).await, ["waiting for the result of ask (1.0)"]);
    let refused = lines(run(&["answer", r#"{"colour": 7}"#])).await;
    assert!(refused[0].starts_with("refused: ") && refused[0].contains("/colour"), "{refused:?}");
    let error = failure(run(&["resume"])).await;
    assert!(error.contains("waits for answers"), "{error}");

    assert_eq!(lines(run(&["answer", BLUE])).await, ["recorded; now run: resume"]);
    let error = failure(run(&["answer", BLUE])).await;
    assert!(error.contains("no call is waiting for a result"), "{error}");
    assert_eq!(lines(run(&["resume"])).await, ["The order is handled."]);
    let result = result(folder.path()).await;
    assert!(result.contains("blue"), "{result}");
}

#[tokio::test]
async fn after_the_deadline_the_run_continues_without_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| client_tools(folder.path(), words);
    assert_eq!(lines(run(&["order", "0.001"])).await, ["waiting for the result of ask (1.0)"]);
    assert_eq!(lines(run(&["answer", BLUE])).await, ["too late; now run: resume"]);
    assert_eq!(lines(run(&["resume"])).await, ["The order is handled."]);
    let result = result(folder.path()).await;
    assert!(result.contains("tool_unanswered"), "{result}");
}
