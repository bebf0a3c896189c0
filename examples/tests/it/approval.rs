//! Runs the example as a user would, each command in a separate process.

use std::path::Path;

use tokio::process::Command;

use crate::program::{example, failure, lines};

fn approval(folder: &Path, words: &[&str]) -> Command {
    let mut command = example(env!("CARGO_BIN_EXE_approval"));
    command.args(words).current_dir(folder);
    command
}

#[tokio::test]
async fn the_payment_is_made_after_approval() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| approval(folder.path(), words);
    assert_eq!(lines(run(&["place"])).await, ["waiting for approval of pay (1.0)"]);
    let error = failure(run(&["resume"])).await;
    assert!(error.contains("waits for answers"), "{error}");
    let approved = lines(run(&["approve"])).await;
    assert_eq!(approved, [r#"pay {"to":"Ann","cents":9000}"#, "recorded; now run: resume"]);
    let error = failure(run(&["deny"])).await;
    assert!(error.contains("no call is waiting for approval"), "{error}");
    let paid = lines(run(&["resume"])).await;
    assert_eq!(paid, ["paying 9000 cents to Ann", "The request is handled."]);
}

#[tokio::test]
async fn the_payment_is_not_made_after_denial() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| approval(folder.path(), words);
    lines(run(&["place"])).await;
    lines(run(&["deny", "too", "expensive"])).await;
    assert_eq!(lines(run(&["resume"])).await, ["The request is handled."]);
}
