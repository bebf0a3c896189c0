//! Tests of `--db postgres://…`.

use helix_agents::prelude::PostgresStore;
use helix_agents_testkit::servers::{self, Afterwards};
use rustix::process::Signal;
use serde_json::json;

use crate::support::TestDir;
use crate::support::server::{Turn, model};

/// The URL of a schema that is deleted after the test.
fn database() -> (String, Afterwards) {
    let url = format!("{}?schema={}", servers::postgres(), servers::unique());
    let builder = PostgresStore::builder(&url).connections(1);
    (url, Afterwards::new(|| async { builder.destroy().await.unwrap() }))
}

/// The password in the URL, which must not appear in any output.
fn password(url: &str) -> &str {
    let (user, _) = url.rsplit_once('@').unwrap();
    user.rsplit_once(':').unwrap().1
}

#[tokio::test]
async fn a_run_is_recorded_in_a_server_and_found_again() {
    let (dir, (url, _gone)) = (TestDir::new(), database());
    let db = ["--db", &url];
    let helix = async |args: &[&str]| dir.helix(&[args, &db[..]].concat()).await;
    let demo = helix(&["demo", "--scripted", "--pace", "0"]).await;
    assert_eq!((demo.code, &*demo.stderr), (0, ""));
    let list = helix(&["sessions", "list", "--json"]).await;
    let session = list.json()[0]["session"].as_str().unwrap().to_owned();
    let log = helix(&["sessions", "log", &session]).await;
    assert!(log.stdout.contains("run_ended completed"), "{log:?}");
    let tail = helix(&["tail", &session]).await;
    assert!(tail.stdout.contains("To compare the moons"), "{tail:?}");
    let doctor = helix(&["doctor"]).await;
    assert!(doctor.stdout.contains("sessions: 1 completed"), "{doctor:?}");
    assert!(doctor.stdout.contains("fsync on, synchronous_commit on"), "{doctor:?}");
    for done in [&demo, &log, &tail, &doctor] {
        let is_shown = done.stdout.contains(password(&url)) || done.stderr.contains(password(&url));
        assert!(!is_shown, "the password is in the output: {done:?}");
    }
    assert_eq!(helix(&["sessions", "delete", &session]).await.code, 0);
    assert_eq!(helix(&["sessions", "list", "--json"]).await.json(), json!([]));
    assert_eq!(std::fs::read_dir(dir.path("")).unwrap().count(), 0, "a file was created");
}

#[tokio::test]
async fn a_run_of_an_agent_file_does_not_show_the_password() {
    let (dir, (url, _gone)) = (TestDir::new(), database());
    let model = model(vec![Turn::Text("Yes.")]).await;
    dir.ask(&model);
    dir.write("agent.toml", "name = \"teller\"\nprompt = \"You tell.\"\n");
    let done = dir.helix(&["run", "agent.toml", "Well?", "--db", &url]).await;
    assert_eq!((done.code, &*done.stdout), (0, "Yes.\n"), "{done:?}");
    assert!(done.stderr.contains("in postgres://"), "{done:?}");
    assert!(!done.stderr.contains(password(&url)), "{done:?}");
}

#[tokio::test]
async fn a_killed_run_is_resumed_from_the_server() {
    let (dir, (url, _gone)) = (TestDir::new(), database());
    let demo = dir.start_demo("10", &["--db", &url]).await;
    let session = demo.session.clone();
    demo.signal(Signal::KILL);
    demo.end().await;
    let done = dir.helix(&["resume", &session, "--db", &url]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let log = dir.helix(&["sessions", "log", &session, "--db", &url]).await;
    assert!(log.stdout.contains("run_ended completed"), "{log:?}");
}

#[tokio::test]
async fn tables_are_created_by_migrate_or_the_first_run_only() {
    let (dir, (url, _gone)) = (TestDir::new(), database());
    let looked = dir.helix(&["sessions", "list", "--db", &url, "--json"]).await;
    assert_eq!((looked.code, &looked.json_error()["code"]), (1, &"store_older".into()));
    let doctor = dir.helix(&["doctor", "--db", &url]).await;
    assert!(doctor.stdout.contains("no tables yet"), "{doctor:?}");
    for before in [0, 5] {
        let done = dir.helix(&["migrate", "--db", &url, "--json"]).await;
        let shown = url.replace(&format!(":{}", password(&url)), "");
        let expected = json!({ "db": shown, "before": before, "schema": 5 });
        assert_eq!((done.code, done.json()), (0, expected));
    }
    assert_eq!(dir.helix(&["sessions", "list", "--db", &url]).await.code, 0);
    let file = dir.helix(&["migrate", "--db", "sessions.db", "--json"]).await;
    assert_eq!((file.code, &file.json_error()["code"]), (1, &"input_invalid".into()));
}

#[tokio::test]
async fn doctor_reports_an_unavailable_server_without_the_password() {
    let dir = TestDir::new();
    let url = "postgres://helix:geheim@127.0.0.1:1/nowhere";
    let doctor = dir.helix(&["doctor", "--db", url, "--json"]).await;
    assert_eq!(doctor.code, 1);
    assert!(!doctor.stdout.contains("geheim"), "{doctor:?}");
    assert_eq!(doctor.json()["stores"]["postgres"]["error"]["code"], "store_unavailable");
}
