//! `helix sessions fork`, and rewinds with `helix resume`.

use crate::support::TestDir;

#[tokio::test]
async fn a_fork_starts_at_a_step_and_can_be_resumed() {
    let (dir, session) = TestDir::after_demo().await;
    let demo = dir.helix(&["sessions", "show", &session, "--json"]).await.json();
    let forked =
        dir.helix(&["sessions", "fork", &session, "--step", "2", "--as", "copy", "--json"]).await;
    let forked = forked.json();
    assert_eq!((&forked["session"], &forked["from"]), (&"copy".into(), &demo["session"]));
    let checkpoints = dir.helix(&["sessions", "checkpoints", "copy", "--json"]).await.json();
    assert_eq!(checkpoints.as_array().unwrap().len(), 2);
    assert_eq!(checkpoints[1]["version"], forked["at"]);
    let resumed = dir.helix(&["resume", "copy", "--json"]).await.json();
    assert_eq!((&resumed["status"], &resumed["output"]), (&"completed".into(), &demo["output"]));
    let again = dir.helix(&["sessions", "fork", &session, "--as", "copy"]).await;
    assert!(again.stderr.contains("session_exists"), "{}", again.stderr);
    let nowhere = dir.helix(&["sessions", "fork", &session, "--step", "99"]).await;
    assert!(nowhere.stderr.contains("checkpoint_not_found"), "{}", nowhere.stderr);
}

#[tokio::test]
async fn a_fork_may_start_at_a_checkpoint_before_a_rewind() {
    let (dir, session) = TestDir::after_demo().await;
    let checkpoints = dir.helix(&["sessions", "checkpoints", &session, "--json"]).await.json();
    let version = |index: usize| checkpoints[index]["version"].to_string();
    dir.helix(&["resume", &session, "--checkpoint", &version(1), "--json"]).await.json();
    let fork =
        ["sessions", "fork", "--last", "--checkpoint", &version(3), "--as", "copy", "--json"];
    let forked = dir.helix(&fork).await.json();
    assert_eq!((&forked["from"], &forked["at"]), (&session.into(), &checkpoints[3]["version"]));
}

#[tokio::test]
async fn a_session_can_be_rewound_to_its_start() {
    let (dir, session) = TestDir::after_demo().await;
    let demo = dir.helix(&["sessions", "show", &session, "--json"]).await.json();
    let rewind = ["resume", &session, "--checkpoint", "0", "--json"];
    let refused = dir.helix(&rewind).await;
    assert_eq!((refused.code, &refused.json_error()["code"]), (1, &"input_invalid".into()));
    let again = [&rewind[..], &["--message", "Compare the planets."]].concat();
    let resumed = dir.helix(&again).await.json();
    assert_eq!((&resumed["status"], &resumed["output"]), (&"completed".into(), &demo["output"]));
}
