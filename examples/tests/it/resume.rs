//! Runs the example as a user would: kills the process and starts another one.

use std::path::Path;

use tokio::process::Command;

use crate::program::{example, kill_at, lines};

fn resume(folder: &Path) -> Command {
    let mut command = example(env!("CARGO_BIN_EXE_resume"));
    command.current_dir(folder);
    command
}

#[tokio::test]
async fn the_next_process_resumes_a_killed_run() {
    let folder = tempfile::tempdir().unwrap();
    let first = kill_at("visiting Rome", resume(folder.path())).await;
    let expected = [
        "starting the tour",
        "visiting Oslo (attempt 1)",
        "visited Oslo",
        "visiting Rome (attempt 1)",
    ];
    assert_eq!(first, expected);

    // The visit to Oslo is in the log and is not repeated. The outcome of the visit to Rome is
    // unknown, so it is repeated.
    let second = lines(resume(folder.path())).await;
    let expected = [
        "resuming",
        "visiting Rome (attempt 2)",
        "visited Rome",
        "visiting Athens (attempt 1)",
        "visited Athens",
        "All three are beautiful.",
    ];
    assert_eq!(second, expected);

    let third = lines(resume(folder.path())).await;
    assert_eq!(third, ["starting another turn", "In Oslo, Rome and Athens."]);
}
