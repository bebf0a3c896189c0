//! Tests of an interactive `helix chat`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Signal, kill_process};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::tmux::Terminal;
use crate::support::{ModelServer, Running, Scripted, TestDir};

#[tokio::test]
async fn a_message_is_answered_and_the_next_one_knows_it() {
    let (dir, server) = (
        TestDir::new(),
        ModelServer::start([Scripted::Words("Good day!"), Scripted::Words("Yes.")]).await,
    );
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("helix chat").await;
    terminal.shows("with openai:scripted").await;
    terminal.run("hello there").await;
    terminal.shows("Good day!\n1 step · 1200 in, 34 out").await;
    terminal.run("still there?").await;
    terminal.shows("Yes.\n1 step · 1200 in, 34 out").await;
    prompt(&terminal).await;
    terminal.keys(&["C-d"]).await;
    terminal.shows("to continue: helix chat --session ses_").await;
    assert_eq!(terminal.exit().await, 0);
    let messages = server.requests()[1]["messages"].clone();
    let contents: Vec<_> =
        messages.as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(contents[contents.len() - 3..], ["hello there", "Good day!", "still there?"]);
}

/// A terminal with a started chat.
async fn chatting<'a>(dir: &'a TestDir, server: &ModelServer) -> Terminal<'a> {
    let terminal = Terminal::with_model(dir, server).await;
    terminal.run("helix chat").await;
    terminal.shows("Ctrl-D leaves\n>").await;
    terminal
}

/// Waits for the prompt. The editor does not receive keys that are pressed before it.
async fn prompt(terminal: &Terminal<'_>) {
    let is_there = |shown: &str| shown.lines().last() == Some(">");
    terminal.until("to wait for a message".into(), is_there).await;
}

async fn leave(terminal: &Terminal<'_>) {
    prompt(terminal).await;
    terminal.keys(&["C-d"]).await;
    assert_eq!(terminal.exit().await, 0);
}

#[tokio::test]
async fn ctrl_c_at_the_prompt_clears_the_line_and_shows_a_hint() {
    let (dir, server) = (TestDir::new(), ModelServer::start([Scripted::Words("Good day!")]).await);
    let terminal = chatting(&dir, &server).await;
    terminal.types("nonsense").await;
    terminal.shows("> nonsense").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("use Ctrl-D or /quit to leave\n>").await;
    terminal.run("hello").await;
    terminal.shows("Good day!").await;
    assert_eq!(server.requests()[0]["messages"][1]["content"], "hello");
    leave(&terminal).await;
}

#[tokio::test]
async fn ctrl_c_interrupts_the_run_and_resume_continues_it() {
    let replies = [Scripted::Asks("To be continued", "dance"), Scripted::Words("The end.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let terminal = chatting(&dir, &server).await;
    terminal.run("tell me a story").await;
    terminal.shows("To be continued").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("interrupting at the end of this step").await;
    server.let_go();
    terminal.shows("interrupted: /resume continues the turn, a message starts another one").await;
    terminal.run("/resume").await;
    terminal.shows("The end.").await;
    leave(&terminal).await;
}

#[tokio::test]
async fn a_message_after_an_interruption_starts_another_turn() {
    let replies = [Scripted::Asks("To be continued", "dance"), Scripted::Words("Fine.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let terminal = chatting(&dir, &server).await;
    terminal.run("tell me a story").await;
    terminal.shows("To be continued").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("interrupting").await;
    server.let_go();
    terminal.shows("interrupted: /resume continues").await;
    terminal.run("no, something else").await;
    terminal.shows("Fine.").await;
    let messages = server.requests()[1]["messages"].clone();
    assert_eq!(messages.as_array().unwrap().last().unwrap()["content"], "no, something else");
    leave(&terminal).await;
}

#[tokio::test]
async fn a_second_ctrl_c_aborts_the_run_and_not_the_chat() {
    let replies = [Scripted::Waits("Once upon", " a time"), Scripted::Words("Fine.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let terminal = chatting(&dir, &server).await;
    terminal.run("tell me a story").await;
    terminal.shows("Once upon").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("Ctrl-C again aborts").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("\naborted\n").await;
    terminal.run("something else").await;
    terminal.shows("Fine.").await;
    leave(&terminal).await;
}

#[tokio::test]
async fn a_turn_that_fails_leaves_the_chat_and_can_be_resumed() {
    let replies = [Scripted::Fails, Scripted::Words("There we are.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let terminal = chatting(&dir, &server).await;
    terminal.run("hello").await;
    let shown = terminal.shows("failed: /resume continues").await;
    // The text of the server must not clear the screen.
    assert!(
        shown.contains(r"no\u{1b}[2J such \u{1b}[32mthing") && shown.contains("helix chat"),
        "{shown}"
    );
    terminal.run("/resume").await;
    terminal.shows("There we are.").await;
    leave(&terminal).await;
}

#[tokio::test]
async fn a_killed_chat_can_be_continued() {
    let replies = [Scripted::Waits("Once upon", ""), Scripted::Words("Twice upon a time.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    let chat = terminal.start("helix chat").await;
    terminal.run("tell me a story").await;
    terminal.shows("Once upon").await;
    kill_process(chat, Signal::KILL).unwrap();
    terminal.shows("Killed").await;
    terminal.run("helix chat --last").await;
    terminal.shows("its last run").await;
    terminal.run("go on!").await;
    terminal.shows("then send the message again").await;
    terminal.run("/resume").await;
    terminal.shows("waiting up to").await;
    terminal.keys(&["C-c"]).await;
    prompt(&terminal).await;
    terminal.run("/resume").await;
    terminal.shows("Twice upon a time.").await;
    leave(&terminal).await;
}

#[tokio::test]
async fn sigterm_at_the_prompt_restores_the_terminal() {
    let (dir, server) = (TestDir::new(), ModelServer::start([]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    let chat = terminal.start("helix chat").await;
    terminal.shows("Ctrl-D leaves\n>").await;
    terminal.types("half a").await;
    terminal.shows("> half a").await;
    kill_process(chat, Signal::TERM).unwrap();
    assert_eq!(terminal.exit().await, 4);
}

#[tokio::test]
async fn sigterm_while_a_command_waits_ends_the_chat() {
    let (dir, server) =
        (TestDir::new(), ModelServer::start([Scripted::Waits("Once upon", "")]).await);
    let mut other = dir.command(&["chat"]);
    other.envs(server.variables()).stdin(Stdio::piped());
    let mut other = Running::of(other);
    other.child.stdin.take().unwrap().write_all(b"tell me a story\n").await.unwrap();
    server.requested().await;
    let list = dir.helix(&["sessions", "list", "--json"]).await.json();
    let terminal = Terminal::with_model(&dir, &server).await;
    let chat = terminal.start("helix chat").await;
    terminal.shows("Ctrl-D leaves\n>").await;
    terminal.run(&format!("/resume {}", list[0]["session"].as_str().unwrap())).await;
    terminal.shows("waiting up to").await;
    kill_process(chat, Signal::TERM).unwrap();
    assert_eq!(terminal.exit().await, 4);
}

#[tokio::test]
async fn model_text_is_sanitized() {
    let words = "\u{1b}[2J\u{1b}]0;title\u{7}\u{1b}[31mred\u{1b}[0m\r\nnext\ttab";
    let (dir, server) = (TestDir::new(), ModelServer::start([Scripted::Words(words)]).await);
    let terminal = chatting(&dir, &server).await;
    terminal.run("attack").await;
    let shown = terminal.shows("next    tab").await;
    assert!(shown.contains("␛[2J␛]0;title␇␛[31mred␛[0m\nnext"), "{shown}");
    leave(&terminal).await;
}

#[tokio::test]
async fn the_status_line_shows_the_tokens_of_the_turn() {
    let replies = [Scripted::Calls("dance", json!({})), Scripted::Waits("A word", " and another")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let terminal = chatting(&dir, &server).await;
    terminal.run("count").await;
    terminal.shows("A word\n").await;
    terminal.shows("· 1.2k in, 34 out · 0:0").await;
    server.let_go();
    terminal.shows("A word and another\n2 steps · 2400 in, 68 out").await;
    leave(&terminal).await;
}

#[tokio::test]
async fn commands_do_what_help_says() {
    let replies = [Scripted::Words("One."), Scripted::Words("Two."), Scripted::Words("Three.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(replies).await);
    let terminal = chatting(&dir, &server).await;
    terminal.run("/help").await;
    terminal.shows("/quit").await;
    terminal.run("/log").await;
    terminal.shows("there is no session yet").await;
    terminal.run("/resmue").await;
    terminal.shows("did you mean /resume?").await;
    terminal.run("first").await;
    terminal.shows("One.").await;
    terminal.run("/log").await;
    terminal.shows("run_ended completed \"One.\"").await;
    terminal.run("/state").await;
    terminal.shows("\"notes\": {}").await;
    terminal.run("/resume").await;
    terminal.shows("there is nothing to resume").await;
    terminal.run("/model openai:another").await;
    terminal.shows("model: openai:another").await;
    terminal.run("/new").await;
    terminal.shows("the next message starts a new session").await;
    terminal.run("second").await;
    terminal.shows("Two.").await;
    terminal.run("/sessions").await;
    let shown = terminal.until("to list two sessions".into(), move |shown| {
        shown.lines().filter(|line| line.starts_with("ses_")).count() == 2
    });
    let shown = shown.await;
    let first = shown.lines().rev().find(|line| line.starts_with("ses_")).unwrap();
    let first = first.split_whitespace().next().unwrap();
    terminal.run(&format!("/resume {first}")).await;
    terminal.shows(&format!("session {first}: its last turn is completed")).await;
    terminal.run("third").await;
    terminal.shows("Three.").await;
    terminal.run("/quit").await;
    terminal.shows(&format!("helix chat --session {first}")).await;
    assert_eq!(terminal.exit().await, 0);
    let requests = server.requests();
    assert_eq!(requests[1]["model"], "another");
    assert_eq!(requests[1]["messages"].as_array().unwrap().len(), 2);
    assert_eq!(requests[2]["messages"][1]["content"], "first");
}

#[tokio::test]
async fn the_history_is_kept_and_private() {
    let (dir, server) = (
        TestDir::new(),
        ModelServer::start([Scripted::Words("One."), Scripted::Words("Two.")]).await,
    );
    let terminal = chatting(&dir, &server).await;
    terminal.run("a memorable question").await;
    terminal.shows("One.").await;
    leave(&terminal).await;
    terminal.run("helix chat").await;
    terminal.shows("Ctrl-D leaves\n>").await;
    terminal.keys(&["Up"]).await;
    terminal.shows("\n> a memorable question").await;
    terminal.keys(&["Enter"]).await;
    terminal.shows("Two.").await;
    leave(&terminal).await;
    let file = dir.path(".local/state/helix/history");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
}

#[tokio::test]
async fn a_message_can_have_several_lines() {
    let (dir, server) = (
        TestDir::new(),
        ModelServer::start([Scripted::Words("One."), Scripted::Words("Two.")]).await,
    );
    let terminal = chatting(&dir, &server).await;
    terminal.run("first \\").await;
    terminal.run("second").await;
    terminal.shows("One.").await;
    terminal.pastes("third\nfourth").await;
    terminal.shows("third\nfourth").await;
    terminal.keys(&["Enter"]).await;
    terminal.shows("Two.").await;
    let asked = server.requests();
    assert_eq!(asked[0]["messages"][1]["content"], "first \nsecond");
    assert_eq!(asked[1]["messages"][3]["content"], "third\nfourth");
    leave(&terminal).await;
}

#[tokio::test]
async fn a_dumb_terminal_has_neither_editing_nor_status_nor_colours() {
    let (dir, server) =
        (TestDir::new(), ModelServer::start([Scripted::Waits("A word", " and another")]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("TERM=dumb helix chat").await;
    terminal.shows("Ctrl-D leaves\n>").await;
    terminal.run("hello").await;
    terminal.shows("A word").await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("interrupting").await;
    server.let_go();
    terminal.shows(" and another").await;
    prompt(&terminal).await;
    terminal.keys(&["C-c"]).await;
    terminal.shows("use Ctrl-D or /quit to leave").await;
    let colored = terminal.colored().await;
    assert!(!colored.contains('\u{1b}') && !colored.contains("waiting"), "{colored}");
    leave(&terminal).await;
}

#[tokio::test]
async fn with_redirected_output_the_prompt_stays() {
    let (dir, server) = (TestDir::new(), ModelServer::start([Scripted::Words("Good day!")]).await);
    let terminal = Terminal::with_model(&dir, &server).await;
    terminal.run("helix chat >said.txt").await;
    prompt(&terminal).await;
    terminal.run("hello").await;
    prompt(&terminal).await;
    leave(&terminal).await;
    let text = std::fs::read_to_string(dir.path("said.txt")).unwrap();
    assert!(text.contains("\nGood day!\n") && !text.contains('\u{1b}'), "{text}");
}

#[tokio::test]
async fn text_typed_during_a_turn_is_the_next_message() {
    let scripted = [Scripted::Waits("One", " and a half."), Scripted::Words("Two.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(scripted).await);
    let terminal = chatting(&dir, &server).await;
    terminal.run("first").await;
    terminal.shows("One").await;
    terminal.run("second").await;
    terminal.shows("second").await;
    server.let_go();
    terminal.shows("Two.").await;
    assert_eq!(server.requests()[1]["messages"][3]["content"], "second");
    leave(&terminal).await;
}

#[tokio::test]
async fn messages_that_arrive_at_once_are_turns_one_after_the_other() {
    let scripted = [Scripted::Words("One."), Scripted::Words("Two."), Scripted::Words("Three.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(scripted).await);
    let terminal = chatting(&dir, &server).await;
    terminal.keys(&["first", "Enter", "second", "Enter", "third", "Enter"]).await;
    terminal.shows("Three.").await;
    let requests = server.requests();
    let asked = [&requests[0]["messages"][1], &requests[1]["messages"][3]];
    assert_eq!(asked.map(|message| &message["content"]), ["first", "second"]);
    leave(&terminal).await;
}
