//! `helix sessions`.

use helix_agents::event::Event;
use helix_agents::id::RunId;
use helix_agents::session::Session;
use helix_agents::store::SessionStatus;

use crate::support::TestDir;

#[tokio::test]
async fn sessions_are_listed_newest_first() {
    let (dir, first) = TestDir::after_demo().await;
    let second = dir.helix(&["demo", "--scripted", "--pace", "0", "--json"]).await.json();
    let list = dir.helix(&["sessions", "list", "--json"]).await.json();
    let listed: Vec<_> = list.as_array().unwrap().iter().map(|row| &row["session"]).collect();
    assert_eq!(listed, [&second["session"], &first.as_str().into()]);
    assert_eq!(list[0]["status"], "completed");
    assert_eq!(list[0]["head"]["created"]["tags"]["model"], "script");

    let page = ["sessions", "list", "--limit", "1", "--json"];
    let page = dir.helix(&page).await.json();
    assert_eq!(page.as_array().unwrap().len(), 1);
    let after = ["sessions", "list", "--after", second["session"].as_str().unwrap(), "--json"];
    assert_eq!(dir.helix(&after).await.json()[0]["session"], first.as_str());

    let text = dir.helix(&["sessions", "list"]).await.stdout;
    assert!(text.starts_with("SESSION") && text.lines().count() == 3, "{text}");
}

#[tokio::test]
async fn sessions_are_listed_by_tag() {
    let (dir, session) = TestDir::after_demo().await;
    dir.helix(&["demo", "--scripted", "--pace", "1", "--json"]).await.json();
    for (tags, sessions) in [
        (&["--tag", "model=script"][..], 2),
        (&["--tag", "model=script", "--tag", "pace_ms=1"], 1),
        (&["--tag", "model=script", "--tag", "pace_ms=1=2"], 0),
        (&["--tag", "model=script", "--after", &session], 0),
    ] {
        let list = dir.helix(&[&["sessions", "list", "--json"], tags].concat()).await.json();
        assert_eq!(list.as_array().unwrap().len(), sessions, "{tags:?}");
    }
    let refused = dir.helix(&["sessions", "list", "--tag", "model"]).await;
    assert_eq!((refused.code, &*refused.stdout), (2, ""));
    let invalid = dir.helix(&["sessions", "list", "--tag", "=script", "--json"]).await;
    assert_eq!((invalid.code, &invalid.json_error()["code"]), (1, &"tag_invalid".into()));
}

#[tokio::test]
async fn show_has_the_status_of_a_session() {
    let (dir, session) = TestDir::after_demo().await;
    let shown = dir.helix(&["sessions", "show", "--last", "--json"]).await.json();
    assert_eq!((&shown["session"], &shown["steps"]), (&session.as_str().into(), &5.into()));
    assert_eq!(shown["runs"][0]["status"], "completed");
    assert!(shown["output"]["answer"].is_string(), "{shown}");

    let text = dir.helix(&["sessions", "show", &session]).await.stdout;
    for expected in [&*session, "researcher", "completed", "execute", "tag      model = script"] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
}

#[tokio::test]
async fn the_log_has_one_event_per_line_in_order() {
    let (dir, session) = TestDir::after_demo().await;
    let events = dir.log(&session).await;
    let seqs: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    assert!(events[0]["event"]["session_created"].is_object(), "{}", events[0]);
    let last = events.last().unwrap();
    assert!(last["event"]["run_ended"]["outcome"]["completed"].is_object(), "{last}");

    let rest = ["sessions", "log", &session, "--after", "20", "--json"];
    assert_eq!(dir.helix(&rest).await.json_lines(), events[20..]);

    let text = dir.helix(&["sessions", "log", "--last"]).await.stdout;
    assert_eq!(text.lines().count(), events.len());
    for name in ["session_created", "model_replied", "tool_finished", "step_closed", "run_ended"] {
        assert!(text.contains(name), "{name}");
    }
}

#[tokio::test]
async fn there_is_a_checkpoint_for_every_step() {
    let (dir, session) = TestDir::after_demo().await;
    let checkpoints = dir.helix(&["sessions", "checkpoints", &session, "--json"]).await.json();
    let steps: Vec<_> =
        checkpoints.as_array().unwrap().iter().map(|checkpoint| &checkpoint["step"]).collect();
    assert_eq!(steps, [1, 2, 3, 4, 5]);
    let text = dir.helix(&["sessions", "checkpoints", "--last"]).await.stdout;
    assert_eq!(text.lines().count(), 6);
}

#[tokio::test]
async fn an_export_holds_all_that_was_recorded() {
    let (dir, session) = TestDir::after_demo().await;
    let export = dir.helix(&["sessions", "export", &session]).await.json();
    assert_eq!(
        (&export["format"], &export["format_version"]),
        (&"helix-agents.session".into(), &1.into())
    );
    assert_eq!(export["sessions"][0]["session"], session.as_str());
    let events = export["sessions"][0]["events"].as_array().unwrap();
    // Includes the times, which the lines of the log have, too.
    assert_eq!(*events, dir.log(&session).await);

    let mut fold = Session::new(session.as_str().into());
    for event in events {
        let run = event["run"].as_str().map(RunId::from);
        let event: Event = serde_json::from_value(event["event"].clone()).unwrap();
        fold.apply(&event, run.as_ref()).unwrap();
    }
    assert_eq!((fold.status(), fold.usage().tool_calls), (SessionStatus::Completed, 7));
    assert_eq!(fold.transcript().len(), 14);
}

#[tokio::test]
async fn an_imported_session_is_identical_and_can_be_resumed() {
    let dir = TestDir::new();
    let mut demo = dir.start_demo("30", &[]).await;
    demo.shows("look_up").await;
    demo.child.kill().await.unwrap();
    let session = demo.session.clone();
    let export = dir.helix(&["sessions", "export", &session]).await.stdout;
    dir.write("export.json", &export);
    let import = ["sessions", "import", "export.json", "--db", "other.db"];
    assert_eq!(dir.helix(&import).await.stdout, format!("{session}\n"));
    let again = ["sessions", "export", &session, "--db", "other.db"];
    assert_eq!(
        dir.helix(&again).await.json()["sessions"][0]["events"],
        serde_json::from_str::<serde_json::Value>(&export).unwrap()["sessions"][0]["events"]
    );
    // A second import is harmless.
    assert_eq!(dir.helix(&import).await.code, 0);

    let resumed = dir.helix(&["resume", &session, "--db", "other.db", "--json"]).await.json();
    assert_eq!(resumed["status"], "completed", "{resumed}");
}

#[tokio::test]
async fn an_invalid_export_is_rejected_and_writes_nothing() {
    let (dir, session) = TestDir::after_demo().await;
    let export = dir.helix(&["sessions", "export", &session]).await.stdout;
    let gap = export.replacen("\"seq\":3,", "\"seq\":4,", 1);
    assert_ne!(gap, export);
    dir.write("export.json", gap);
    let broken = ["sessions", "import", "export.json", "--db", "third.db", "--json"];
    let broken = dir.helix(&broken).await;
    assert_eq!((broken.code, &broken.json_error()["code"]), (1, &"log_invalid".into()));
    dir.write("export.json", "{}");
    let strange = ["sessions", "import", "export.json", "--db", "third.db", "--json"];
    let strange = dir.helix(&strange).await;
    assert_eq!((strange.code, &strange.json_error()["code"]), (1, &"input_invalid".into()));
    assert_eq!(dir.helix(&["sessions", "list", "--db", "third.db", "--json"]).await.stdout, "[]\n");
}

#[tokio::test]
async fn old_sessions_are_purged() {
    let (dir, session) = TestDir::after_demo().await;
    let purge = async |age: &str, more: &[&str]| {
        let args = [&["sessions", "purge", "--older-than", age, "--json"], more].concat();
        dir.helix(&args).await.json()["purged"].clone()
    };
    assert_eq!(purge("30d", &[]).await, 0);
    assert_eq!(purge("0s", &["--status", "failed"]).await, 0);
    assert_eq!(dir.helix(&["sessions", "show", &session]).await.code, 0);
    assert_eq!(purge("0s", &[]).await, 1);
    assert_eq!(dir.helix(&["sessions", "list", "--json"]).await.stdout, "[]\n");
    for (wrong, reason) in [
        (&["--older-than", "a while"][..], "write it like `30d`"),
        (&["--older-than", "1 month"], "use days and smaller units"),
        (&["--older-than=-1d"], "must not be negative"),
        (&["--older-than", "1d", "--status", "sleepy"], "the statuses are: active"),
    ] {
        let done = dir.helix(&[&["sessions", "purge"], wrong].concat()).await;
        assert_eq!(done.code, 2, "{wrong:?}");
        assert!(done.stderr.contains(reason), "{done:?}");
    }
}

#[tokio::test]
async fn a_deleted_session_is_gone() {
    let (dir, session) = TestDir::after_demo().await;
    let deleted = dir.helix(&["sessions", "delete", &session, "--json"]).await;
    assert_eq!(deleted.json()["deleted"], session.as_str());
    for args in [&["sessions", "show"][..], &["sessions", "delete"], &["resume"], &["tail"]] {
        let done = dir.helix(&[args, &[&session, "--json"]].concat()).await;
        assert_eq!((done.code, &done.json_error()["code"]), (1, &"session_not_found".into()));
    }
    assert_eq!(dir.helix(&["sessions", "list", "--json"]).await.stdout, "[]\n");
    let last = dir.helix(&["resume", "--last", "--json"]).await;
    assert_eq!(last.json_error()["code"], "session_not_found");
}

#[tokio::test]
async fn a_session_whose_run_is_alive_is_deleted_only_by_force() {
    let dir = TestDir::new();
    let demo = dir.start_demo("50", &[]).await;
    let list = dir.helix(&["sessions", "list", "--json"]).await.json();
    assert_eq!(list[0]["status"], "running");

    let delete = ["sessions", "delete", &demo.session, "--json"];
    let refused = dir.helix(&delete).await;
    assert_eq!((refused.code, &refused.json_error()["code"]), (1, &"already_running".into()));

    let forced = dir.helix(&[&delete[..], &["--force"]].concat()).await;
    assert_eq!(forced.code, 0, "{forced:?}");
    let ended = demo.end().await;
    assert_eq!(ended.code, 1, "{ended:?}");
}
