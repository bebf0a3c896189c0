//! Tests of interactive approvals.

use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::tmux::Terminal;
use crate::support::{ModelServer, Scripted, TestDir};

const AGENT: &str = r#"
name = "writer"
prompt = "You write."
[tools.files]
root = "data"
write = true
requires_approval = true
"#;

const QUESTION: &str =
    "approve write_file {\"path\":\"a.txt\",\"text\":\"one\"}? [y]es, [n]o, [e]dit, [l]ater:";

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("agent.toml", AGENT);
    dir.write("data/there.txt", "");
    dir
}

fn writes(path: &str) -> Scripted {
    Scripted::Calls("write_file", json!({ "path": path, "text": "one" }))
}

fn text(dir: &TestDir, name: &str) -> Option<String> {
    std::fs::read_to_string(dir.path(name)).ok()
}

#[tokio::test]
async fn a_run_asks_and_a_yes_continues_it() {
    let (dir, server) =
        (dir(), ModelServer::start([writes("a.txt"), Scripted::Words("Done.")]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("USER=ann helix run agent.toml Write.").await;
    terminal.shows(QUESTION).await;
    assert_eq!(text(&dir, "data/a.txt"), None);
    // Other replies do not approve.
    terminal.run("sure").await;
    terminal.shows("answer y (approve), n [REASON] (deny)").await;
    terminal.run("y").await;
    let shown = terminal.shows("completed in").await;
    assert!(shown.contains("✓ write_file") && shown.contains("Done."), "{shown}");
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(text(&dir, "data/a.txt").as_deref(), Some("one"));
    let log = dir.helix(&["sessions", "log", "--last"]).await;
    assert!(log.stdout.contains("submitted 1.0 approved by ann"), "{log:?}");
}

#[tokio::test]
async fn a_no_may_have_a_reason() {
    let (dir, server) =
        (dir(), ModelServer::start([writes("a.txt"), Scripted::Words("Well.")]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("helix run agent.toml Write.").await;
    terminal.shows(QUESTION).await;
    terminal.run("n not there").await;
    terminal.shows("completed in").await;
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(text(&dir, "data/a.txt"), None);
    let messages = server.requests()[1]["messages"].to_string();
    assert!(messages.contains("was not approved by the user: not there"), "{messages}");
}

#[tokio::test]
async fn the_arguments_can_be_changed_in_an_editor() {
    let (dir, server) =
        (dir(), ModelServer::start([writes("a.txt"), Scripted::Words("Done.")]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("EDITOR='sed -i s/one/two/' helix run agent.toml Write.").await;
    terminal.shows(QUESTION).await;
    terminal.run("e").await;
    terminal.shows("completed in").await;
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(text(&dir, "data/a.txt").as_deref(), Some("two"));
}

#[tokio::test]
async fn later_ctrl_c_and_ctrl_d_leave_the_call_pending() {
    for key in ["l", "C-c", "C-d"] {
        let (dir, server) =
            (dir(), ModelServer::start([writes("a.txt"), Scripted::Words("Done.")]).await);
        let terminal = Terminal::with_model(&dir, &server).await;
        terminal.run("helix run agent.toml Write.").await;
        terminal.shows(QUESTION).await;
        terminal.keys(&[key]).await;
        if key == "l" {
            terminal.keys(&["Enter"]).await;
        }
        terminal.shows("answer   helix approvals approve").await;
        assert_eq!(terminal.exit().await, 3, "{key}");
        terminal.run("helix resume --last").await;
        terminal.shows(QUESTION).await;
        terminal.run("yes").await;
        terminal.shows("completed in").await;
        assert_eq!(terminal.exit().await, 0);
        assert_eq!(text(&dir, "data/a.txt").as_deref(), Some("one"));
    }
}

#[tokio::test]
async fn sigterm_at_the_question_leaves_the_run_suspended() {
    let (dir, server) = (dir(), ModelServer::start([writes("a.txt")]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    let run = terminal.start("helix run agent.toml Write.").await;
    terminal.shows(QUESTION).await;
    kill_process(run, Signal::TERM).unwrap();
    assert_eq!(terminal.exit().await, 3);
    let list = dir.helix(&["approvals", "list", "--json"]).await.json();
    assert_eq!(list.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn input_before_the_question_is_discarded() {
    let scripted =
        [Scripted::Asks("Let me write.", "write_file"), writes("a.txt"), Scripted::Words("Done.")];
    let (dir, server) = (dir(), ModelServer::start(scripted).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("helix run agent.toml Write.").await;
    terminal.shows("Let me write.").await;
    terminal.run("y").await;
    terminal.shows("Let me write.y\n").await;
    server.let_go();
    terminal.shows(QUESTION).await;
    assert_eq!(text(&dir, "data/a.txt"), None);
    terminal.run("n").await;
    terminal.shows("completed in").await;
    assert_eq!(text(&dir, "data/a.txt"), None);
    assert_eq!(terminal.exit().await, 0);
}

#[tokio::test]
async fn no_question_is_asked_without_input_or_with_json() {
    for (command, expected) in [
        ("helix run agent.toml Write. --no-input", "answer   helix approvals approve"),
        ("helix run agent.toml Write. --json", "\"resume_command\""),
        ("helix run agent.toml Write. </dev/null", "answer   helix approvals approve"),
    ] {
        let (dir, server) = (dir(), ModelServer::start([writes("a.txt")]).await);
        let terminal = Terminal::with_model(&dir, &server).await;
        terminal.run(command).await;
        let shown = terminal.shows(expected).await;
        assert!(!shown.contains("[y]es"), "{shown}");
        assert_eq!(terminal.exit().await, 3, "{command}");
    }
}

#[tokio::test]
async fn a_chat_asks_and_continues_with_the_next_message() {
    let scripted =
        [writes("a.txt"), Scripted::Words("First."), writes("b.txt"), Scripted::Words("Second.")];
    let (dir, server) = (dir(), ModelServer::start(scripted).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("helix chat agent.toml").await;
    terminal.shows("Ctrl-D leaves\n>").await;
    terminal.run("write").await;
    terminal.shows(QUESTION).await;
    terminal.run("y").await;
    terminal.shows("First.").await;
    terminal.run("again").await;
    terminal.shows("\"b.txt\",\"text\":\"one\"}? [y]es").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("suspended: /resume continues once the calls are answered").await;
    // The question no longer reads the keyboard.
    terminal.run("and a message").await;
    terminal.shows("the last turn waits for answers; /resume continues").await;
    terminal.run("/resume").await;
    terminal
        .until("to ask once more".into(), |shown| {
            shown.matches("\"b.txt\",\"text\":\"one\"}? [y]").count() == 2
        })
        .await;
    terminal.run("n").await;
    terminal.shows("Second.").await;
    let waits = |shown: &str| shown.lines().last() == Some(">");
    terminal.until("to wait for a message".into(), waits).await;
    terminal.keys(&["C-d"]).await;
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(text(&dir, "data/a.txt").as_deref(), Some("one"));
    assert_eq!(text(&dir, "data/b.txt"), None);
}

#[tokio::test]
async fn an_answer_from_another_process_is_detected() {
    let (dir, server) =
        (dir(), ModelServer::start([writes("a.txt"), Scripted::Words("Done.")]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("helix run agent.toml Write.").await;
    terminal.shows(QUESTION).await;
    assert_eq!(dir.helix(&["approvals", "deny", "1.0", "--last"]).await.code, 0);
    terminal.run("y").await;
    terminal.shows("the call has already been answered").await;
    terminal.shows("completed in").await;
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(text(&dir, "data/a.txt"), None);
}
