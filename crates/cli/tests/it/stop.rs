//! Tests of `helix interrupt` and `helix abort` from another process.

use rustix::process::Signal;
use serde_json::json;

use crate::support::TestDir;
use crate::support::server::{Turn, model};

#[tokio::test]
async fn a_run_of_another_process_is_interrupted_and_resumed() {
    let dir = TestDir::new();
    let demo = dir.start_demo("15", &[]).await;
    let session = demo.session.clone();
    let done = dir.helix(&["interrupt", &session, "--reason", "lunch"]).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));
    let expected = format!(
        "interrupt requested: the run stops at the end of the step\nresume   helix resume {session}\n"
    );
    assert_eq!(done.stdout, expected);
    let done = demo.end().await;
    assert_eq!(done.code, 4, "{done:?}");
    let log = dir.helix(&["sessions", "log", &session]).await;
    assert!(log.stdout.contains("run_ended interrupted lunch"), "{log:?}");
    // No run is active any more.
    let again = dir.helix(&["interrupt", &session, "--json"]).await;
    assert_eq!((again.code, &again.json_error()["code"]), (1, &"nothing_to_stop".into()));
    assert_eq!(dir.helix(&["resume", &session]).await.code, 0);
}

#[tokio::test]
async fn a_run_of_another_process_is_aborted() {
    let dir = TestDir::new();
    let demo = dir.start_demo("2000", &[]).await;
    let session = demo.session.clone();
    let done = dir.helix(&["abort", &session, "--json"]).await;
    let expected = json!({ "session": session, "requested": "abort", "aborted": true });
    assert_eq!((done.code, done.json()), (0, expected));
    assert_eq!(demo.end().await.code, 4);
    let again = dir.helix(&["abort", &session, "--json"]).await;
    assert_eq!((again.code, &again.json_error()["code"]), (1, &"nothing_to_stop".into()));
}

#[tokio::test]
async fn a_session_whose_process_was_killed_is_aborted_and_cannot_be_interrupted() {
    let dir = TestDir::new();
    let demo = dir.start_demo("2000", &[]).await;
    let session = demo.session.clone();
    demo.signal(Signal::KILL);
    demo.end().await;
    // After lease expiry the run is aborted here.
    let done = dir.helix(&["abort", &session]).await;
    assert_eq!((done.code, &*done.stdout), (0, &*format!("aborted {session}\n")), "{done:?}");
    assert!(done.stderr.contains("waiting for up to 15 s for the run to stop"), "{done:?}");
    assert!(done.stderr.contains("its process has probably crashed"), "{done:?}");
    let shown = dir.helix(&["sessions", "show", &session]).await;
    assert!(shown.stdout.contains("status   aborted"), "{shown:?}");
}

#[tokio::test]
async fn a_session_that_waits_is_aborted_by_its_agent_file_and_without_a_model() {
    let dir = TestDir::new();
    let call = json!({ "path": "a.txt", "text": "one" });
    let model = model(vec![Turn::call("write_file", call)]).await;
    dir.ask(&model);
    let agent = "name = \"w\"\nprompt = \"x\"\n[tools.files]\nroot = \"data\"\nwrite = true\n\
                 requires_approval = true\n";
    dir.write("agent.toml", agent);
    dir.write("data/there.txt", "");
    assert_eq!(dir.helix(&["run", "agent.toml", "Write."]).await.code, 3);
    drop(model);
    std::fs::remove_file(dir.path("helix.toml")).unwrap();

    let interrupt = dir.helix(&["interrupt", "--last"]).await;
    assert_eq!(interrupt.code, 1);
    assert!(interrupt.stderr.contains("the session waits for answers"), "{interrupt:?}");
    std::fs::rename(dir.path("agent.toml"), dir.path("moved.toml")).unwrap();
    let gone = dir.helix(&["abort", "--last"]).await;
    assert_eq!(gone.code, 1);
    assert!(
        gone.stderr.contains("the agent file of the session does not exist any more"),
        "{gone:?}"
    );
    let done = dir.helix(&["abort", "--last", "--agent", "moved.toml", "--reason", "no"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let late = dir.helix(&["approvals", "approve", "1.0", "--last", "--json"]).await;
    assert_eq!((late.code, &late.json_error()["code"]), (1, &"answer_to_aborted".into()));
    assert!(!dir.path("data/a.txt").exists());
}
