//! Tests of `--db redis://…`.

use helix_agents::prelude::RedisStore;
use helix_agents_testkit::servers::{self, Afterwards};
use rustix::process::Signal;
use serde_json::json;

use crate::support::TestDir;

/// The URL of a prefix that is deleted after the test.
fn server() -> (String, Afterwards) {
    let url = format!("{}?prefix={}", servers::redis(), servers::unique());
    let builder = RedisStore::builder(&url);
    (url, Afterwards::new(|| async { builder.destroy().await.unwrap() }))
}

/// The password in the URL, which must not appear in any output.
fn password(url: &str) -> &str {
    let (user, _) = url.rsplit_once('@').unwrap();
    user.rsplit_once(':').unwrap().1
}

#[tokio::test]
async fn a_run_is_recorded_in_redis_and_found_again() {
    let (dir, (url, _gone)) = (TestDir::new(), server());
    let db = ["--db", &url];
    let helix = async |args: &[&str]| dir.helix(&[args, &db[..]].concat()).await;
    let none = helix(&["sessions", "list", "--json"]).await;
    assert_eq!((none.code, none.json()), (0, json!([])));
    let demo = helix(&["demo", "--scripted", "--pace", "0"]).await;
    assert_eq!((demo.code, &*demo.stderr), (0, ""));
    let list = helix(&["sessions", "list", "--json"]).await;
    let session = list.json()[0]["session"].as_str().unwrap().to_owned();
    let log = helix(&["sessions", "log", &session]).await;
    assert!(log.stdout.contains("run_ended completed"), "{log:?}");
    let tail = helix(&["tail", &session]).await;
    assert!(tail.stdout.contains("To compare the moons"), "{tail:?}");
    let doctor = helix(&["doctor"]).await;
    assert!(doctor.stdout.contains("sessions: 1"), "{doctor:?}");
    assert!(doctor.stdout.contains("appendfsync always"), "{doctor:?}");
    for done in [&demo, &log, &tail, &doctor] {
        let is_shown = done.stdout.contains(password(&url)) || done.stderr.contains(password(&url));
        assert!(!is_shown, "the password is in the output: {done:?}");
    }
    assert_eq!(helix(&["sessions", "delete", &session]).await.code, 0);
    assert_eq!(helix(&["sessions", "list", "--json"]).await.json(), json!([]));
    assert_eq!(std::fs::read_dir(dir.path("")).unwrap().count(), 0, "a file was created");
}

#[tokio::test]
async fn a_killed_run_is_resumed_from_redis() {
    let (dir, (url, _gone)) = (TestDir::new(), server());
    let demo = dir.start_demo("40", &["--db", &url]).await;
    let session = demo.session.clone();
    demo.signal(Signal::KILL);
    demo.end().await;
    let done = dir.helix(&["resume", &session, "--db", &url]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let log = dir.helix(&["sessions", "log", &session, "--db", &url]).await;
    assert!(log.stdout.contains("run_ended completed"), "{log:?}");
}

#[tokio::test]
async fn doctor_reports_an_unavailable_server_without_the_password() {
    let dir = TestDir::new();
    let url = "redis://:geheim@127.0.0.1:1";
    let doctor = dir.helix(&["doctor", "--db", url, "--json"]).await;
    assert_eq!(doctor.code, 1);
    assert!(!doctor.stdout.contains("geheim"), "{doctor:?}");
    assert_eq!(doctor.json()["stores"]["redis"]["error"]["code"], "store_unavailable");
}

#[tokio::test]
async fn doctor_reports_the_settings_of_the_server() {
    let (dir, (url, _gone)) = (TestDir::new(), server());
    let doctor = dir.helix(&["doctor", "--db", &url, "--json"]).await;
    let found = &doctor.json()["stores"]["redis"];
    assert_eq!(found["server"]["eviction"], "noeviction");
    assert_eq!(found["server"]["schema"], json!(null), "the check creates nothing");
    let advice = doctor.json()["advice"].as_array().unwrap().clone();
    let memory = advice.iter().find(|finding| finding["code"] == "server_settings").unwrap();
    assert!(memory["remedy"].as_str().unwrap().contains("maxmemory"), "{memory}");
    let migrate = dir.helix(&["migrate", "--db", &url, "--json"]).await;
    assert_eq!((migrate.code, &migrate.json_error()["code"]), (1, &"input_invalid".into()));
}
