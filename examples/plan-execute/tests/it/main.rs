//! Runs the example as a user would.

use tokio::process::Command;

#[tokio::test]
async fn it_plans_shows_its_plans_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-plan-execute"));
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").env_remove("HELIX_MODEL");
    let output = command.current_dir(folder.path()).output().await.unwrap();
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
