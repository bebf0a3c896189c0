//! The other commands, typed into a shell.

use serde_json::json;

use super::demo::{has_status, status};
use super::tmux::Terminal;
use crate::support::{ModelServer, Place, Says};

const RECKONER: &str = "name = \"reckoner\"\nprompt = \"You compute.\"\n[tools.calculator]\n";

#[tokio::test]
async fn a_run_shows_its_tools_and_what_it_waits_for() {
    let says =
        [Says::Calls("calculate", json!({ "expression": "6 * 7" })), Says::Waits("It is", " 42.")];
    let (place, server) = (Place::new(), ModelServer::start(says).await);
    place.write("agent.toml", RECKONER);
    let terminal = Terminal::with_model(&place, &server).await;
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
    let says = [Says::Asks("Let me see", "calculate"), Says::Words("It is 42.")];
    let (place, server) = (Place::new(), ModelServer::start(says).await);
    place.write("agent.toml", RECKONER);
    let terminal = Terminal::with_model(&place, &server).await;
    terminal.run("echo 'What is six times seven?' | helix run agent.toml").await;
    terminal.shows("Let me see").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("interrupting at the end of this step").await;
    server.let_go();
    terminal.shows("go on    helix resume ses_").await;
    assert_eq!(terminal.exit().await, 4);
    terminal.run("helix resume --last").await;
    terminal.shows("It is 42.").await;
    terminal.shows("log      helix sessions log").await;
    assert_eq!(terminal.exit().await, 0);
}

#[tokio::test]
async fn an_agent_file_that_makes_no_sense_is_told_in_place() {
    let (place, server) = (Place::new(), ModelServer::start([]).await);
    place.write("agent.toml", "name = \"reckoner\"\npromt = \"You compute.\"\n");
    let terminal = Terminal::with_model(&place, &server).await;
    terminal.run("helix run agent.toml hello").await;
    terminal.shows("did you mean `prompt`?").await;
    assert_eq!(terminal.exit().await, 1);
}

#[tokio::test]
async fn what_is_no_run_is_printed_as_it_is() {
    let place = Place::new();
    let terminal = Terminal::open(&place).await;
    for (command, shows) in [
        ("helix schema", "\"$schema\""),
        ("helix --version", "helix 0."),
        ("helix --help", "Talk with an agent"),
    ] {
        terminal.run(command).await;
        terminal.shows(shows).await;
        assert_eq!(terminal.exit().await, 0, "{command}");
    }
    terminal.run("helix dance").await;
    terminal.shows("unrecognized subcommand 'dance'").await;
    assert_eq!(terminal.exit().await, 2);
}
