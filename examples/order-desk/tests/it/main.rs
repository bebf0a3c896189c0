//! The example as people run it: a process that is really killed, and the next one.
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

/// Runs it, and kills it once the shop has the order.
async fn killed_after_the_order(folder: &Path) {
    let mut child = example(folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(line) = timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap() {
        if line.contains("the shop has taken order") {
            child.kill().await.unwrap();
            return;
        }
    }
    panic!("it never ordered");
}

async fn to_the_end(folder: &Path) -> String {
    let output = timeout(DEADLINE, example(folder).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn orders(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("orders.txt")).unwrap().lines().count()
}

#[tokio::test]
async fn kill_it_after_the_order_and_the_next_process_asks_the_shop() {
    let folder = tempfile::tempdir().unwrap();
    killed_after_the_order(folder.path()).await;
    assert_eq!(orders(folder.path()), 1);

    let said = to_the_end(folder.path()).await;
    assert_eq!(said, "going on\nthe shop says that it has order 1\ndone: order 1\n");
    assert_eq!(orders(folder.path()), 1);

    let said = to_the_end(folder.path()).await;
    assert_eq!(said, "the order is placed already\ndone: order 1\n");
    assert_eq!(orders(folder.path()), 1);
}

#[tokio::test]
async fn kill_it_before_the_order_has_arrived_and_the_next_process_orders() {
    let folder = tempfile::tempdir().unwrap();
    killed_after_the_order(folder.path()).await;
    // The order got lost on its way.
    std::fs::remove_file(folder.path().join("orders.txt")).unwrap();

    let said = to_the_end(folder.path()).await;
    assert!(said.contains("the shop has no such order: ordering now"), "{said}");
    assert_eq!(orders(folder.path()), 1);
}
