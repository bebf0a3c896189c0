//! Runs the example as a user would: kills the process and starts another one.

use std::path::Path;

use tokio::process::Command;

use crate::program::{example, kill_at, lines};

fn order_desk(folder: &Path) -> Command {
    let mut command = example(env!("CARGO_BIN_EXE_order-desk"));
    command.current_dir(folder);
    command
}

async fn kill_after_the_order(folder: &Path) {
    kill_at("the shop accepted order", order_desk(folder)).await;
}

fn orders(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("orders.txt")).unwrap().lines().count()
}

#[tokio::test]
async fn after_a_kill_the_next_process_asks_the_shop() {
    let folder = tempfile::tempdir().unwrap();
    kill_after_the_order(folder.path()).await;
    assert_eq!(orders(folder.path()), 1);

    let output = lines(order_desk(folder.path())).await;
    assert_eq!(output, ["resuming", "the shop confirms order 1", "done: order 1"]);
    assert_eq!(orders(folder.path()), 1);

    let output = lines(order_desk(folder.path())).await;
    assert_eq!(output, ["the order was already placed", "done: order 1"]);
    assert_eq!(orders(folder.path()), 1);
}

#[tokio::test]
async fn if_the_order_was_lost_the_next_process_orders() {
    let folder = tempfile::tempdir().unwrap();
    kill_after_the_order(folder.path()).await;
    // The shop never received the order.
    std::fs::remove_file(folder.path().join("orders.txt")).unwrap();

    let output = lines(order_desk(folder.path())).await;
    let expected = "the shop has no such order; ordering now";
    assert!(output.iter().any(|line| line.contains(expected)), "{output:?}");
    assert_eq!(orders(folder.path()), 1);
}
