//! Tests of recorded sessions in a terminal: `helix resume`, `helix sessions`, `helix tail`.

use super::demo::{has_status, status};
use super::tmux::Terminal;
use crate::support::{ModelServer, Scripted, TestDir};

#[tokio::test]
async fn an_interrupted_demo_is_resumed_and_watched_to_its_end() {
    let dir = TestDir::new();
    let mut demo = dir.start_demo("20", &[]).await;
    demo.shows("started").await;
    demo.signal(rustix::process::Signal::INT);
    assert_eq!(demo.end().await.code, 4);
    let terminal = Terminal::open(&dir).await;
    terminal.run("helix resume --last").await;
    terminal.until("to show a tool".into(), |shown| has_status(shown, "look_up")).await;
    let shown = terminal.shows("log      helix sessions log").await;
    assert!(shown.contains("resumed") && shown.contains("completed in"), "{shown}");
    assert_eq!(status(&shown), None, "{shown}");
    assert_eq!(terminal.exit().await, 0);
    terminal.run("helix resume --last").await;
    terminal.shows("is completed: there is nothing to resume").await;
    assert_eq!(terminal.exit().await, 0);
}

#[tokio::test]
async fn sessions_are_shown_with_colours_where_they_help() {
    let (dir, session) = TestDir::after_demo().await;
    let terminal = Terminal::open(&dir).await;
    for (command, shows) in [
        ("list", "completed  researcher"),
        ("show --last", "status   completed"),
        ("log --last", "run_ended completed"),
        ("checkpoints --last", "5     "),
        ("export --last", "\"format\":\"helix-agents.session\""),
    ] {
        terminal.run(&format!("helix sessions {command}")).await;
        terminal.shows(shows).await;
        let colored = terminal.colored().await;
        assert_eq!(colored.contains('\u{1b}'), command.starts_with("log"), "{colored}");
        assert_eq!(terminal.exit().await, 0);
    }
    terminal.run(&format!("helix sessions delete {session}")).await;
    terminal.shows(&format!("deleted {session}")).await;
    assert_eq!(terminal.exit().await, 0);
    terminal.run("helix sessions show --last").await;
    terminal.shows("there are no sessions yet").await;
    assert_eq!(terminal.exit().await, 1);
}

#[tokio::test]
async fn recorded_text_is_sanitized() {
    let words = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}2J";
    let (dir, server) = (TestDir::new(), ModelServer::start([Scripted::Words(words)]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("echo attack | helix chat").await;
    terminal.shows("␛[2J").await;
    assert_eq!(terminal.exit().await, 0);
    terminal.run("helix sessions log --last").await;
    let shown = terminal.shows("run_ended completed").await;
    assert!(shown.contains("model_replied") && shown.contains("[2J ]0;title"), "{shown}");
    assert_eq!(terminal.exit().await, 0);
    terminal.run("helix tail --last").await;
    let shown = terminal.shows("␛]0;title␇").await;
    assert!(shown.contains("helix tail"), "{shown}");
    assert_eq!(terminal.exit().await, 0);
}

#[tokio::test]
async fn errors_have_no_untrusted_colours() {
    let dir = TestDir::new();
    // Invalid TOML: the message quotes the text and the path.
    dir.write("\u{1b}[32mgreen/agent.toml", "name = \u{1b}[31m");
    let terminal = Terminal::open(&dir).await;
    for line in ["helix run */agent.toml Hi", "helix sessions list --limit */", "helix */"] {
        terminal.run(line).await;
        terminal.shows("[32mgreen").await;
        let colored = terminal.colored().await;
        assert!(!colored.contains('\u{1b}'), "{colored:?}");
        assert_ne!(terminal.exit().await, 0);
    }
}

#[tokio::test]
async fn a_session_is_followed_from_another_terminal() {
    let dir = TestDir::new();
    let demo = dir.start_demo("20", &[]).await;
    let terminal = Terminal::open(&dir).await;
    terminal.run("helix tail --last").await;
    terminal.until("to show a tool".into(), |shown| has_status(shown, "look_up")).await;
    assert_eq!(demo.end().await.code, 0);
    let shown = terminal.shows("Two moons are larger").await;
    assert!(shown.contains("→ rank"), "{shown}");
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(status(&terminal.text().await), None);
}
