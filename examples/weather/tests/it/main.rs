//! Runs the example as a user would.

use tokio::process::Command;

#[tokio::test]
async fn it_answers_with_the_scripted_model() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-weather"));
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").env_remove("HELIX_MODEL");
    let output = command.current_dir(folder.path()).output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "the model is script\n");
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout, "umbrella: true, because it rains in Bergen until noon\n");
    assert!(folder.path().join("advisor.db").exists());
}

#[tokio::test]
async fn it_uses_the_configured_model() {
    let folder = tempfile::tempdir().unwrap();
    // No server listens on this port. The error shows that the example contacted it.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    std::fs::write(
        folder.path().join("helix.toml"),
        format!("[providers.local]\nbase_url = \"http://127.0.0.1:{port}/v1\"\nmodel = \"none\"\n"),
    )
    .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-weather"));
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL");
    command.env_remove("HELIX_MODEL").current_dir(folder.path());
    let output = command.output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("the model is local:none\n"), "{stderr}");
    assert!(stderr.contains("provider_unavailable"), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
}
