//! Tests of the auxiliary commands: `helix init`, `helix doctor`, `helix completions`, `helix man`.

use super::tmux::Terminal;
use crate::support::{ModelServer, Scripted, TestDir};

#[tokio::test]
async fn a_chat_takes_the_agent_file_that_init_wrote() {
    let (dir, server) = (TestDir::new(), ModelServer::start([Scripted::Words("Good day!")]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("helix init").await;
    terminal.shows("agent.toml").await;
    assert_eq!(terminal.exit().await, 0);
    let file = std::fs::read_to_string(dir.path("agent.toml")).unwrap();
    let name = file.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
    terminal.run("helix chat").await;
    terminal.shows(&format!("{} with openai:scripted", name.trim_matches('"'))).await;
    terminal.run("hello").await;
    terminal.shows("Good day!").await;
    terminal.run("/quit").await;
    assert_eq!(terminal.exit().await, 0);
}

#[tokio::test]
async fn doctor_checks_the_configuration() {
    let (dir, server) = (TestDir::new(), ModelServer::start([]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("helix doctor").await;
    let shown = terminal.shows("openai:scripted").await;
    assert!(!shown.contains("secret"), "{shown}");
    assert_eq!(terminal.exit().await, 0);
    dir.write("helix.toml", "this is not TOML");
    terminal.run("helix doctor").await;
    terminal.shows("helix.toml").await;
    assert_eq!(terminal.exit().await, 1);
}

#[tokio::test]
async fn output_for_other_programs_is_unchanged() {
    let dir = TestDir::new();
    let terminal = Terminal::open(&dir).await;
    for (command, shows) in
        [("helix completions bash", "complete -F _helix"), ("helix man", ".TH ")]
    {
        terminal.run(command).await;
        terminal.shows(shows).await;
        assert_eq!(terminal.exit().await, 0, "{command}");
    }
}
