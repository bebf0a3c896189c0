//! What models, servers and strangers wrote, in places of one line: it stays in its line, and is
//! text. Into a pipe nothing is cleaned on the way, so it is seen here.

use serde_json::json;

use crate::support::{ModelServer, Place, Says};

const AGENT: &str = "name = \"a\"\nprompt = \"b\"\n[tools.calculator]\n";

/// A name that ends its line, and would begin a green one.
const NAME: &str = "look\n\u{1b}[32mup";

/// A place with a run that called a tool of that name and failed of an error of that kind.
async fn after_attack() -> Place {
    let says = [Says::Calls(NAME, json!({ "a": 1 })), Says::Fails];
    let (place, server) = (Place::new(), ModelServer::start(says).await);
    place.write("agent.toml", AGENT);
    let mut run = place.command(&["run", "agent.toml", "Hi"]);
    let output = run.envs(server.variables()).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    is_text(&String::from_utf8(output.stderr).unwrap());
    // Providers leave line ends out of what servers say; not everybody who writes a log does.
    let file = place.path("helix.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let (found, instead) = (b" such ", br"such\n");
    for at in 0..bytes.len() - found.len() {
        if bytes[at..].starts_with(found) {
            bytes[at..at + found.len()].copy_from_slice(instead);
        }
    }
    std::fs::write(&file, bytes).unwrap();
    place
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
    let place = after_attack().await;
    let tail = place.helix(&["tail", "--last"]).await.stdout;
    is_text(&tail);
    assert!(tail.contains("look  [32mup"), "{tail}");
    let log = place.helix(&["sessions", "log", "--last"]).await.stdout;
    is_text(&log);
    assert!(log.contains("=look  [32mup{"), "{log}");
    let events = place.helix(&["sessions", "log", "--last", "--json"]).await.json_lines();
    assert_eq!(log.lines().count(), events.len(), "{log}");
}

#[tokio::test]
async fn errors_of_servers_stay_in_their_line() {
    let place = after_attack().await;
    let error = r"no\u{1b}[2Jsuch\n\u{1b}[32mthing";
    for command in [&["sessions", "show", "--last"][..], &["tail", "--last"]] {
        let shown = place.helix(command).await.stdout;
        is_text(&shown);
        assert!(shown.contains(error), "{shown}");
    }
}

/// With `--json`, standard error is the log of the process.
#[tokio::test]
async fn the_log_of_the_process_repeats_nothing_of_the_conversation() {
    let says = [Says::Calls("calculate", json!({ "expression": "secret + 1" })), Says::Fails];
    let (place, server) = (Place::new(), ModelServer::start(says).await);
    place.write("agent.toml", "name = \"a\"\nprompt = \"secret prompt\"\n[tools.calculator]\n");
    let mut run = place.command(&["run", "agent.toml", "secret question", "--json"]);
    let run = run.envs(server.variables()).env("HELIX_LOG", "trace");
    let output = run.output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("TRACE"), "{stderr}");
    assert!(!stderr.contains("secret") && !stderr.contains("[32mthing"), "{stderr}");
    // The result repeats the server's text.
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("provider_rejected") && stdout.contains("such"), "{stdout}");
}

#[tokio::test]
async fn a_name_in_the_context_of_an_error_stays_in_its_line() {
    let (place, _) = Place::after_demo().await;
    let done = place.helix(&["sessions", "show", NAME]).await;
    is_text(&done.stderr);
    assert_eq!((done.code, done.stderr.lines().count()), (1, 1), "{done:?}");
    assert!(done.stderr.contains(r"session=look\n\u{1b}[32mup"), "{done:?}");
}

#[tokio::test]
async fn an_argument_that_makes_no_sense_is_told_in_its_line() {
    let place = Place::new();
    for args in [&[NAME][..], &["sessions", "list", "--limit", NAME], &["tail", "ses_1", NAME]] {
        let done = place.helix(args).await;
        is_text(&done.stderr);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains(r"look\n\u{1b}[32mup"), "{done:?}");
    }
}

#[tokio::test]
async fn what_was_shown_of_a_step_that_was_killed_is_void() {
    let says = [Says::Waits("Let me", " see"), Says::Words("It is 42.")];
    let (place, server) = (Place::new(), ModelServer::start(says).await);
    place.write("agent.toml", AGENT);
    let mut run = place.command(&["run", "agent.toml", "Hi"]);
    run.stdout(std::process::Stdio::null()).envs(server.variables());
    let mut run = run.spawn().unwrap();
    server.asked().await;
    // Of text alone a pipe has no line yet.
    place.start(&["tail", "--last", "--json"]).shows("Let me").await;
    run.kill().await.unwrap();
    server.let_go();
    let mut resume = place.command(&["resume", "--last"]);
    let resumed = resume.envs(server.variables()).output().await.unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    let tail = place.helix(&["tail", "--last"]).await.stdout;
    assert!(tail.contains("what was shown of an unfinished step is void\n"), "{tail}");
    assert!(tail.contains("It is 42.") && !tail.contains("Let me"), "{tail}");
}
