//! Runs the example as a user would.

use crate::program::{example, output};

#[tokio::test]
async fn it_plans_shows_its_plans_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = example(env!("CARGO_BIN_EXE_plan-execute"));
    command.current_dir(folder.path());
    let output = output(command).await;
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "no model is configured; using a scripted one\n");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let expected = [
        "round 0",
        "  weather: weather in Bergen",
        "  weather: weather in Oslo",
        "  weather: \"heavy rain\"",
        "  weather: \"sunny, 18 degrees\"",
        "round 1",
        "  trains: trains to Oslo",
        "  trains: [\"08:25 to Oslo\",\"10:25 to Oslo\"]",
        "planning ended: Response",
        "Oslo: it is sunny there, and it rains in Bergen. Take the 08:25.",
        "3 records, 4 steps",
    ];
    assert_eq!(stdout.lines().collect::<Vec<_>>(), expected);
}
