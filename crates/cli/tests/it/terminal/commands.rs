//! Tests of the other commands in a terminal.

use serde_json::json;

use super::demo::{has_status, status};
use super::tmux::Terminal;
use crate::support::{ModelServer, Scripted, TestDir};

const RECKONER: &str = "name = \"reckoner\"\nprompt = \"You compute.\"\n[tools.calculator]\n";

#[tokio::test]
async fn a_run_shows_its_tools_and_what_it_waits_for() {
    let scripted = [
        Scripted::Calls("calculate", json!({ "expression": "6 * 7" })),
        Scripted::Waits("It is", " 42."),
    ];
    let (dir, server) = (TestDir::new(), ModelServer::start(scripted).await);
    dir.write("agent.toml", RECKONER);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("helix run agent.toml 'What is six times seven?'").await;
    let is_waiting = |shown: &str| has_status(shown, "· 1.2k in, 34 out ·");
    terminal.until("to wait for the model".into(), is_waiting).await;
    server.let_go();
    let shown = terminal.shows("\nIt is 42.\n").await;
    assert!(shown.contains("→ calculate") && shown.contains("✓ calculate"), "{shown}");
    let shown = terminal.shows("log      helix sessions log").await;
    assert_eq!(status(&shown), None, "{shown}");
    let colored = terminal.colored().await;
    assert!(colored.contains("[32m✓"), "{colored:?}");
    assert_eq!(terminal.exit().await, 0);
}

#[tokio::test]
async fn a_run_is_interrupted_and_resumed_in_the_terminal() {
    let scripted = [Scripted::Asks("Let me see", "calculate"), Scripted::Words("It is 42.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(scripted).await);
    dir.write("agent.toml", RECKONER);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("echo 'What is six times seven?' | helix run agent.toml").await;
    terminal.shows("Let me see").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("interrupting at the end of this step").await;
    server.let_go();
    terminal.shows("resume   helix resume ses_").await;
    assert_eq!(terminal.exit().await, 4);
    terminal.run("helix resume --last").await;
    terminal.shows("It is 42.").await;
    terminal.shows("log      helix sessions log").await;
    assert_eq!(terminal.exit().await, 0);
}

#[tokio::test]
async fn an_invalid_agent_file_is_reported() {
    let (dir, server) = (TestDir::new(), ModelServer::start([]).await);
    dir.write("agent.toml", "name = \"reckoner\"\npromt = \"You compute.\"\n");
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("helix run agent.toml hello").await;
    terminal.shows("did you mean `prompt`?").await;
    assert_eq!(terminal.exit().await, 1);
}

#[tokio::test]
async fn other_output_is_unchanged() {
    let dir = TestDir::new();
    let terminal = Terminal::open(&dir).await;
    for (command, shows) in [
        ("helix schema", "\"$schema\""),
        ("helix --version", "helix 0."),
        ("helix --help", "Chat with an agent"),
    ] {
        terminal.run(command).await;
        terminal.shows(shows).await;
        assert_eq!(terminal.exit().await, 0, "{command}");
    }
    terminal.run("helix dance").await;
    terminal.shows("unrecognized subcommand 'dance'").await;
    assert_eq!(terminal.exit().await, 2);
}
