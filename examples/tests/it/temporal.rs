//! Runs the example as a user would: kills a worker, which the client does not notice.

use std::path::Path;

use helix_agents_testkit::servers;
use tokio::process::Command;

use crate::program::{Process, example};

fn temporal(folder: &Path, queue: &str, arguments: &[&str]) -> Command {
    let mut command = example(env!("CARGO_BIN_EXE_temporal"));
    command.env("TOURS_SERVER", servers::temporal()).env("TOURS_QUEUE", queue);
    command.args(arguments).current_dir(folder);
    command
}

#[tokio::test]
async fn another_worker_continues_the_run_of_a_killed_one() {
    let (folder, queue) = (tempfile::tempdir().unwrap(), servers::unique());
    let start = |arguments: &[&str]| Process::start(temporal(folder.path(), &queue, arguments));
    let mut first = start(&["worker"]);
    first.wait_for("worker started").await;
    let mut client = start(&["ask", "Visit Oslo, Rome and Athens."]);
    let seen = first.wait_for("visiting Rome").await;
    assert_eq!(seen, ["visiting Oslo", "visited Oslo", "visiting Rome"]);
    first.kill().await;

    // The visit to Oslo is in the log and is not repeated. The outcome of the visit to Rome is
    // unknown, so it is repeated.
    let mut second = start(&["worker"]);
    let seen = second.wait_for("visited Athens").await;
    let expected =
        ["worker started", "visiting Rome", "visited Rome", "visiting Athens", "visited Athens"];
    assert_eq!(seen, expected);
    client.wait_for("All three are beautiful.").await;
    client.wait().await;
}
