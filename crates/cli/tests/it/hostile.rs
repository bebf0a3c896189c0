//! Untrusted text of models and servers in single-line output: it stays in its line and has no control
//! characters. The tests use pipes, because terminal output is sanitized anyway.

use serde_json::json;

use crate::support::{ModelServer, Scripted, TestDir};

const AGENT: &str = "name = \"a\"\nprompt = \"b\"\n[tools.calculator]\n";

/// A name with a line end and an escape sequence for green text.
const NAME: &str = "look\n\u{1b}[32mup";

/// A folder with a run that called a tool of this name and failed with an error of this kind.
async fn after_attack() -> TestDir {
    let scripted = [Scripted::Calls(NAME, json!({ "a": 1 })), Scripted::Fails];
    let (dir, server) = (TestDir::new(), ModelServer::start(scripted).await);
    dir.write("agent.toml", AGENT);
    let mut run = dir.command(&["run", "agent.toml", "Hi"]);
    let output = run.envs(server.variables()).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    is_text(&String::from_utf8(output.stderr).unwrap());
    // Providers remove line ends from messages of servers, but other writers of a log may not.
    let file = dir.path("helix.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let (found, instead) = (b" such ", br"such\n");
    for at in 0..bytes.len() - found.len() {
        if bytes[at..].starts_with(found) {
            bytes[at..at + found.len()].copy_from_slice(instead);
        }
    }
    std::fs::write(&file, bytes).unwrap();
    dir
}

#[track_caller]
fn is_text(shown: &str) {
    let bare = shown.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(bare, None, "{shown}");
    assert!(!shown.lines().any(|line| line.trim_start().starts_with("[32m")), "{shown}");
    assert!(!shown.lines().any(|line| line == "thing"), "{shown}");
}

#[tokio::test]
async fn names_of_tools_stay_in_their_line() {
    let dir = after_attack().await;
    let tail = dir.helix(&["tail", "--last"]).await.stdout;
    is_text(&tail);
    assert!(tail.contains("look  [32mup"), "{tail}");
    let log = dir.helix(&["sessions", "log", "--last"]).await.stdout;
    is_text(&log);
    assert!(log.contains("=look  [32mup{"), "{log}");
    let events = dir.helix(&["sessions", "log", "--last", "--json"]).await.json_lines();
    assert_eq!(log.lines().count(), events.len(), "{log}");
}

#[tokio::test]
async fn errors_of_servers_stay_in_their_line() {
    let dir = after_attack().await;
    let error = r"no\u{1b}[2Jsuch\n\u{1b}[32mthing";
    for command in [&["sessions", "show", "--last"][..], &["tail", "--last"]] {
        let shown = dir.helix(command).await.stdout;
        is_text(&shown);
        assert!(shown.contains(error), "{shown}");
    }
}

/// With `--json`, standard error contains only the log of the process.
#[tokio::test]
async fn the_log_of_the_process_repeats_nothing_of_the_conversation() {
    let scripted =
        [Scripted::Calls("calculate", json!({ "expression": "secret + 1" })), Scripted::Fails];
    let (dir, server) = (TestDir::new(), ModelServer::start(scripted).await);
    dir.write("agent.toml", "name = \"a\"\nprompt = \"secret prompt\"\n[tools.calculator]\n");
    let mut run = dir.command(&["run", "agent.toml", "secret question", "--json"]);
    let run = run.envs(server.variables()).env("HELIX_LOG", "trace");
    let output = run.output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("TRACE"), "{stderr}");
    assert!(!stderr.contains("secret") && !stderr.contains("[32mthing"), "{stderr}");
    // The result contains the server's text.
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("provider_rejected") && stdout.contains("such"), "{stdout}");
}

#[tokio::test]
async fn a_name_in_the_context_of_an_error_stays_in_its_line() {
    let (dir, _) = TestDir::after_demo().await;
    let done = dir.helix(&["sessions", "show", NAME]).await;
    is_text(&done.stderr);
    assert_eq!((done.code, done.stderr.lines().count()), (1, 1), "{done:?}");
    assert!(done.stderr.contains(r"session=look\n\u{1b}[32mup"), "{done:?}");
}

#[tokio::test]
async fn an_invalid_argument_stays_in_its_line() {
    let dir = TestDir::new();
    for args in [&[NAME][..], &["sessions", "list", "--limit", NAME], &["tail", "ses_1", NAME]] {
        let done = dir.helix(args).await;
        is_text(&done.stderr);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains(r"look\n\u{1b}[32mup"), "{done:?}");
    }
}

#[tokio::test]
async fn the_output_of_a_killed_step_is_discarded() {
    let scripted = [Scripted::Waits("Let me", " see"), Scripted::Words("It is 42.")];
    let (dir, server) = (TestDir::new(), ModelServer::start(scripted).await);
    dir.write("agent.toml", AGENT);
    let mut run = dir.command(&["run", "agent.toml", "Hi"]);
    run.stdout(std::process::Stdio::null()).envs(server.variables());
    let mut run = run.spawn().unwrap();
    server.requested().await;
    // The pipe has no complete line of text yet.
    dir.start(&["tail", "--last", "--json"]).shows("Let me").await;
    run.kill().await.unwrap();
    server.let_go();
    let mut resume = dir.command(&["resume", "--last"]);
    let resumed = resume.envs(server.variables()).output().await.unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    let tail = dir.helix(&["tail", "--last"]).await.stdout;
    assert!(tail.contains("the output of the unfinished step is discarded\n"), "{tail}");
    assert!(tail.contains("It is 42.") && !tail.contains("Let me"), "{tail}");
}
