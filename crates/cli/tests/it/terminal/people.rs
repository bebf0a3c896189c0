//! A person who is asked at once, at the keyboard.

use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::tmux::Terminal;
use crate::support::{ModelServer, Place, Says};

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

fn place() -> Place {
    let place = Place::new();
    place.write("agent.toml", AGENT);
    place.write("data/there.txt", "");
    place
}

fn writes(path: &str) -> Says {
    Says::Calls("write_file", json!({ "path": path, "text": "one" }))
}

fn text(place: &Place, name: &str) -> Option<String> {
    std::fs::read_to_string(place.path(name)).ok()
}

#[tokio::test]
async fn run_asks_and_a_yes_goes_on() {
    let (place, server) =
        (place(), ModelServer::start([writes("a.txt"), Says::Words("Done.")]).await);
    let terminal = Terminal::with_model(&place, &server).await;
    terminal.run("USER=ann helix run agent.toml Write.").await;
    terminal.shows(QUESTION).await;
    assert_eq!(text(&place, "data/a.txt"), None);
    // Only a yes is one.
    terminal.run("sure").await;
    terminal.shows("type y, n, n with a reason behind it, or l").await;
    terminal.run("y").await;
    let shown = terminal.shows("completed in").await;
    assert!(shown.contains("✓ write_file") && shown.contains("Done."), "{shown}");
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(text(&place, "data/a.txt").as_deref(), Some("one"));
    let log = place.helix(&["sessions", "log", "--last"]).await;
    assert!(log.stdout.contains("submitted 1.0 approved by ann"), "{log:?}");
}

#[tokio::test]
async fn a_no_may_have_a_reason() {
    let (place, server) =
        (place(), ModelServer::start([writes("a.txt"), Says::Words("Well.")]).await);
    let terminal = Terminal::with_model(&place, &server).await;
    terminal.run("helix run agent.toml Write.").await;
    terminal.shows(QUESTION).await;
    terminal.run("n not there").await;
    terminal.shows("completed in").await;
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(text(&place, "data/a.txt"), None);
    let told = server.requests()[1]["messages"].to_string();
    assert!(told.contains("was not approved by the user: not there"), "{told}");
}

#[tokio::test]
async fn the_arguments_can_be_changed_in_an_editor() {
    let (place, server) =
        (place(), ModelServer::start([writes("a.txt"), Says::Words("Done.")]).await);
    let terminal = Terminal::with_model(&place, &server).await;
    terminal.run("EDITOR='sed -i s/one/two/' helix run agent.toml Write.").await;
    terminal.shows(QUESTION).await;
    terminal.run("e").await;
    terminal.shows("completed in").await;
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(text(&place, "data/a.txt").as_deref(), Some("two"));
}

#[tokio::test]
async fn later_and_ctrl_c_and_ctrl_d_leave_it_to_others() {
    for key in ["l", "C-c", "C-d"] {
        let (place, server) =
            (place(), ModelServer::start([writes("a.txt"), Says::Words("Done.")]).await);
        let terminal = Terminal::with_model(&place, &server).await;
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
        assert_eq!(text(&place, "data/a.txt").as_deref(), Some("one"));
    }
}

#[tokio::test]
async fn a_request_to_terminate_at_the_question_leaves_the_run_suspended() {
    let (place, server) = (place(), ModelServer::start([writes("a.txt")]).await);
    let terminal = Terminal::with_model(&place, &server).await;
    let run = terminal.start("helix run agent.toml Write.").await;
    terminal.shows(QUESTION).await;
    kill_process(run, Signal::TERM).unwrap();
    assert_eq!(terminal.exit().await, 3);
    let list = place.helix(&["approvals", "list", "--json"]).await.json();
    assert_eq!(list.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_was_typed_before_the_question_is_no_answer_to_it() {
    let says = [Says::Asks("Let me write.", "write_file"), writes("a.txt"), Says::Words("Done.")];
    let (place, server) = (place(), ModelServer::start(says).await);
    let terminal = Terminal::with_model(&place, &server).await;
    terminal.run("helix run agent.toml Write.").await;
    terminal.shows("Let me write.").await;
    terminal.run("y").await;
    terminal.shows("Let me write.y\n").await;
    server.let_go();
    terminal.shows(QUESTION).await;
    assert_eq!(text(&place, "data/a.txt"), None);
    terminal.run("n").await;
    terminal.shows("completed in").await;
    assert_eq!(text(&place, "data/a.txt"), None);
    assert_eq!(terminal.exit().await, 0);
}

#[tokio::test]
async fn nobody_is_asked_without_input_or_for_programs() {
    for (how, told) in [
        ("helix run agent.toml Write. --no-input", "answer   helix approvals approve"),
        ("helix run agent.toml Write. --json", "\"resume_command\""),
        ("helix run agent.toml Write. </dev/null", "answer   helix approvals approve"),
    ] {
        let (place, server) = (place(), ModelServer::start([writes("a.txt")]).await);
        let terminal = Terminal::with_model(&place, &server).await;
        terminal.run(how).await;
        let shown = terminal.shows(told).await;
        assert!(!shown.contains("[y]es"), "{shown}");
        assert_eq!(terminal.exit().await, 3, "{how}");
    }
}

#[tokio::test]
async fn a_chat_asks_and_goes_on_with_the_next_message() {
    let says = [writes("a.txt"), Says::Words("First."), writes("b.txt"), Says::Words("Second.")];
    let (place, server) = (place(), ModelServer::start(says).await);
    let terminal = Terminal::with_model(&place, &server).await;
    terminal.run("helix chat agent.toml").await;
    terminal.shows("Ctrl-D leaves\n>").await;
    terminal.run("write").await;
    terminal.shows(QUESTION).await;
    terminal.run("y").await;
    terminal.shows("First.").await;
    terminal.run("again").await;
    terminal.shows("\"b.txt\",\"text\":\"one\"}? [y]es").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("suspended: /resume goes on once that is answered").await;
    // Nobody of the question is left who would read what is typed now.
    terminal.run("and a message").await;
    terminal.shows("the last turn waits for people; /resume goes on").await;
    terminal.run("/resume").await;
    terminal
        .until("to ask once more".into(), |it| {
            it.matches("\"b.txt\",\"text\":\"one\"}? [y]").count() == 2
        })
        .await;
    terminal.run("n").await;
    terminal.shows("Second.").await;
    let waits = |shown: &str| shown.lines().last() == Some(">");
    terminal.until("to wait for a message".into(), waits).await;
    terminal.keys(&["C-d"]).await;
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(text(&place, "data/a.txt").as_deref(), Some("one"));
    assert_eq!(text(&place, "data/b.txt"), None);
}

#[tokio::test]
async fn an_answer_from_another_process_is_met() {
    let (place, server) =
        (place(), ModelServer::start([writes("a.txt"), Says::Words("Done.")]).await);
    let terminal = Terminal::with_model(&place, &server).await;
    terminal.run("helix run agent.toml Write.").await;
    terminal.shows(QUESTION).await;
    assert_eq!(place.helix(&["approvals", "deny", "1.0", "--last"]).await.code, 0);
    terminal.run("y").await;
    terminal.shows("the call has already been answered").await;
    terminal.shows("completed in").await;
    assert_eq!(terminal.exit().await, 0);
    assert_eq!(text(&place, "data/a.txt"), None);
}
