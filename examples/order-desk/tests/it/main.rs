//! Runs the example as a user would: kills the process and starts another one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

fn example(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-order-desk"));
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").env_remove("HELIX_MODEL");
    command.current_dir(folder).kill_on_drop(true).stdin(Stdio::null());
    command
}

/// Runs the example and kills it once the shop has the order.
async fn kill_after_the_order(folder: &Path) {
    let mut child = example(folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(line) = timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap() {
        if line.contains("the shop accepted order") {
            child.kill().await.unwrap();
            return;
        }
    }
    panic!("the example never placed an order");
}

async fn run_to_completion(folder: &Path) -> String {
    let output = timeout(DEADLINE, example(folder).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn orders(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("orders.txt")).unwrap().lines().count()
}

#[tokio::test]
async fn after_a_kill_the_next_process_asks_the_shop() {
    let folder = tempfile::tempdir().unwrap();
    kill_after_the_order(folder.path()).await;
    assert_eq!(orders(folder.path()), 1);

    let output = run_to_completion(folder.path()).await;
    assert_eq!(output, "resuming\nthe shop confirms order 1\ndone: order 1\n");
    assert_eq!(orders(folder.path()), 1);

    let output = run_to_completion(folder.path()).await;
    assert_eq!(output, "the order was already placed\ndone: order 1\n");
    assert_eq!(orders(folder.path()), 1);
}

#[tokio::test]
async fn if_the_order_was_lost_the_next_process_orders() {
    let folder = tempfile::tempdir().unwrap();
    kill_after_the_order(folder.path()).await;
    // The shop never received the order.
    std::fs::remove_file(folder.path().join("orders.txt")).unwrap();

    let output = run_to_completion(folder.path()).await;
    assert!(output.contains("the shop has no such order; ordering now"), "{output}");
    assert_eq!(orders(folder.path()), 1);
}
