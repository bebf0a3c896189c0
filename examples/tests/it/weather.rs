//! Runs the example as a user would.

use crate::program::{example, output};

#[tokio::test]
async fn it_answers_with_the_scripted_model() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = example(env!("CARGO_BIN_EXE_weather"));
    command.current_dir(folder.path());
    let output = output(command).await;
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
    let mut command = example(env!("CARGO_BIN_EXE_weather"));
    command.current_dir(folder.path());
    let output = output(command).await;
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("the model is local:none\n"), "{stderr}");
    assert!(stderr.contains("provider_unavailable"), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
}
