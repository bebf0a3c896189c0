//! The example as people run it, on each of the runtimes: to its end, and really killed on the way.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use helix_agents_testkit::servers::{self, Afterwards};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

/// What is printed, whatever carries the run out and whatever happened on the way.
const TOLD: &str = "\
user: Visit Oslo, Rome and Athens.
assistant: visit {\"city\":\"Oslo\"} as 1.0
1.0: \"Oslo is beautiful\"
assistant: visit {\"city\":\"Rome\"} as 2.0
2.0: \"Rome is beautiful\"
assistant: visit {\"city\":\"Athens\"} as 3.0
3.0: \"Athens is beautiful\"
assistant: All three are beautiful.
tokens: 40 in, 20 out
";

/// The example, with a folder and a name of its own.
struct Example {
    runtime: &'static str,
    name: String,
    folder: tempfile::TempDir,
}

impl Example {
    fn on(runtime: &'static str) -> Self {
        Self { runtime, name: servers::unique(), folder: tempfile::tempdir().unwrap() }
    }

    fn command(&self) -> Command {
        let mut command = without_servers(self.folder.path());
        command.arg(self.runtime).env("TOURS_NAME", &self.name);
        match self.runtime {
            "durable" => command.env("TOURS_DATABASE", servers::postgres()),
            "temporal" => command.env("TOURS_SERVER", servers::temporal()),
            _ => &mut command,
        };
        command
    }

    /// Runs it, and kills it once it says this. Answers what it said up to then.
    async fn killed_at(&self, text: &str) -> Vec<String> {
        let mut child = self.command().stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut seen = Vec::new();
        while let Some(line) = timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap() {
            seen.push(line);
            if seen.last().is_some_and(|line| line == text) {
                child.kill().await.unwrap();
                return without_model(seen);
            }
        }
        panic!("it never said `{text}`: {seen:?}");
    }

    /// What it says on its way, and what it tells in the end.
    async fn to_the_end(&self) -> (Vec<String>, String) {
        let output = timeout(DEADLINE, self.command().output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let said = without_model(said.lines().map(str::to_owned).collect());
        (said, String::from_utf8(output.stdout).unwrap())
    }

    /// Removes what it made in the database.
    fn afterwards(&self) -> Option<Afterwards> {
        let (name, url) = (self.name.clone(), (self.runtime == "durable").then(servers::postgres)?);
        Some(Afterwards::new(|| async move {
            let mut db = sqlx::PgConnection::connect(&url).await.unwrap();
            let gone = AssertSqlSafe(format!("DROP SCHEMA {name}_dbos CASCADE"));
            sqlx::query(gone).execute(&mut db).await.unwrap();
        }))
    }
}

fn without_servers(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-runtimes"));
    for setting in
        ["OPENAI_API_KEY", "OPENAI_BASE_URL", "HELIX_MODEL", "TOURS_DATABASE", "TOURS_SERVER"]
    {
        command.env_remove(setting);
    }
    command.current_dir(folder).kill_on_drop(true).stdin(Stdio::null());
    command
}

fn without_model(mut said: Vec<String>) -> Vec<String> {
    assert!(!said.is_empty());
    assert_eq!(said.remove(0), "the model is script");
    said
}

async fn tells_the_same(runtime: &'static str) {
    let example = Example::on(runtime);
    let _gone = example.afterwards();
    let (said, told) = example.to_the_end().await;
    let expected = [
        "setting out",
        "visiting Oslo",
        "been to Oslo",
        "visiting Rome",
        "been to Rome",
        "visiting Athens",
        "been to Athens",
    ];
    assert_eq!(said, expected);
    assert_eq!(told, TOLD);
    let again = example.to_the_end().await;
    assert_eq!(again, (vec!["under way, or done".to_owned()], TOLD.to_owned()));
}

async fn tells_the_same_after_a_kill(runtime: &'static str) {
    let example = Example::on(runtime);
    let _gone = example.afterwards();
    let said = example.killed_at("visiting Rome").await;
    assert_eq!(said, ["setting out", "visiting Oslo", "been to Oslo", "visiting Rome"]);

    // Oslo is on record and is not visited again; Rome is in doubt, and is.
    let (mut said, told) = example.to_the_end().await;
    // Nobody waits for anybody to look.
    said.retain(|line| line != "under way, or done");
    assert_eq!(said, ["visiting Rome", "been to Rome", "visiting Athens", "been to Athens"]);
    assert_eq!(told, TOLD);
}

macro_rules! on_each {
    ($($runtime:ident),+) => {$(
        mod $runtime {
            #[tokio::test]
            async fn the_tour_is_told_as_everywhere() {
                super::tells_the_same(stringify!($runtime)).await;
            }

            #[tokio::test]
            async fn kill_it_and_the_next_process_tells_the_same() {
                super::tells_the_same_after_a_kill(stringify!($runtime)).await;
            }
        }
    )+};
}

on_each!(local, durable, temporal);

#[tokio::test]
async fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (&[] as &[&str], "usage: runtimes local | durable | temporal"),
        (&["durable"], "set TOURS_DATABASE to"),
        (&["temporal"], "set TOURS_SERVER to"),
    ];
    for (arguments, says) in cases {
        let output = without_servers(folder.path()).args(arguments).output().await.unwrap();
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(says), "{said}");
    }
}
