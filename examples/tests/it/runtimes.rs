//! Runs the example as a user would on each of the runtimes, with and without killing it.

use std::path::Path;

use helix_agents_testkit::servers::{self, Afterwards};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::process::Command;

use crate::program::{self, Process};

/// The expected output, whatever runtime executes the run and whatever happens meanwhile.
const HISTORY: &str = "\
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

/// The example with its own folder and name.
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

    /// Runs the example and kills it once a log line contains this text. Returns the log lines up to that one.
    async fn run_and_kill(&self, text: &str) -> Vec<String> {
        let mut process = Process::start_with_errors(self.command());
        let seen = process.wait_for(text).await;
        process.kill().await;
        without_model(seen)
    }

    /// Runs the example to its end. Returns its log lines and its output.
    async fn run_to_completion(&self) -> (Vec<String>, String) {
        let output = program::output(self.command()).await;
        assert!(output.status.success(), "{output:?}");
        let log = String::from_utf8(output.stderr).unwrap();
        let log = without_model(log.lines().map(str::to_owned).collect());
        (log, String::from_utf8(output.stdout).unwrap())
    }

    /// Drops the schema that the example created.
    fn cleanup(&self) -> Option<Afterwards> {
        let (name, url) = (self.name.clone(), (self.runtime == "durable").then(servers::postgres)?);
        Some(Afterwards::new(|| async move {
            let mut db = sqlx::PgConnection::connect(&url).await.unwrap();
            let drop_schema = AssertSqlSafe(format!("DROP SCHEMA {name}_dbos CASCADE"));
            sqlx::query(drop_schema).execute(&mut db).await.unwrap();
        }))
    }
}

fn without_servers(folder: &Path) -> Command {
    let mut command = program::example(env!("CARGO_BIN_EXE_runtimes"));
    command.env_remove("TOURS_DATABASE").env_remove("TOURS_SERVER").current_dir(folder);
    command
}

fn without_model(mut lines: Vec<String>) -> Vec<String> {
    assert!(!lines.is_empty());
    assert_eq!(lines.remove(0), "the model is script");
    lines
}

async fn prints_the_history(runtime: &'static str) {
    let example = Example::on(runtime);
    let _cleanup = example.cleanup();
    let (log, output) = example.run_to_completion().await;
    let expected = [
        "starting the tour",
        "visiting Oslo",
        "visited Oslo",
        "visiting Rome",
        "visited Rome",
        "visiting Athens",
        "visited Athens",
    ];
    assert_eq!(log, expected);
    assert_eq!(output, HISTORY);
    let again = example.run_to_completion().await;
    assert_eq!(again, (vec!["already started".to_owned()], HISTORY.to_owned()));
}

async fn prints_the_history_after_a_kill(runtime: &'static str) {
    let example = Example::on(runtime);
    let _cleanup = example.cleanup();
    let log = example.run_and_kill("visiting Rome").await;
    assert_eq!(log, ["starting the tour", "visiting Oslo", "visited Oslo", "visiting Rome"]);

    // The visit to Oslo is in the log and is not repeated. The outcome of the visit to Rome is
    // unknown, so it is repeated.
    let (mut log, output) = example.run_to_completion().await;
    // This line depends on whether the recovery was faster than the query.
    log.retain(|line| line != "already started");
    assert_eq!(log, ["visiting Rome", "visited Rome", "visiting Athens", "visited Athens"]);
    assert_eq!(output, HISTORY);
}

macro_rules! on_each {
    ($($runtime:ident),+) => {$(
        mod $runtime {
            #[tokio::test]
            async fn the_output_is_the_same_on_each_runtime() {
                super::prints_the_history(stringify!($runtime)).await;
            }

            #[tokio::test]
            async fn the_output_is_the_same_after_a_kill() {
                super::prints_the_history_after_a_kill(stringify!($runtime)).await;
            }
        }
    )+};
}

on_each!(local, durable, temporal);

#[tokio::test]
async fn missing_settings_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (&[] as &[&str], "usage: runtimes local | durable | temporal"),
        (&["durable"], "set TOURS_DATABASE to"),
        (&["temporal"], "set TOURS_SERVER to"),
    ];
    for (arguments, message) in cases {
        let mut command = without_servers(folder.path());
        command.args(arguments);
        let output = program::output(command).await;
        assert!(!output.status.success());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(message), "{stderr}");
    }
}
