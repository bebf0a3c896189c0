//! `helix sessions fork`.

use crate::support::Place;

#[tokio::test]
async fn a_fork_begins_at_a_step_and_is_resumed_like_any_other_session() {
    let (place, session) = Place::after_demo().await;
    let demo = place.helix(&["sessions", "show", &session, "--json"]).await.json();
    let forked =
        place.helix(&["sessions", "fork", &session, "--step", "2", "--as", "copy", "--json"]).await;
    let forked = forked.json();
    assert_eq!((&forked["session"], &forked["from"]), (&"copy".into(), &demo["session"]));
    let checkpoints = place.helix(&["sessions", "checkpoints", "copy", "--json"]).await.json();
    assert_eq!(checkpoints.as_array().unwrap().len(), 2);
    assert_eq!(checkpoints[1]["version"], forked["at"]);
    let resumed = place.helix(&["resume", "copy", "--json"]).await.json();
    assert_eq!((&resumed["status"], &resumed["output"]), (&"completed".into(), &demo["output"]));
    let again = place.helix(&["sessions", "fork", &session, "--as", "copy"]).await;
    assert!(again.stderr.contains("session_exists"), "{}", again.stderr);
    let nowhere = place.helix(&["sessions", "fork", &session, "--step", "99"]).await;
    assert!(nowhere.stderr.contains("checkpoint_not_found"), "{}", nowhere.stderr);
}

#[tokio::test]
async fn a_fork_may_begin_where_the_session_has_gone_back_behind() {
    let (place, session) = Place::after_demo().await;
    let checkpoints = place.helix(&["sessions", "checkpoints", &session, "--json"]).await.json();
    let version = |index: usize| checkpoints[index]["version"].to_string();
    place.helix(&["resume", &session, "--from", &version(1), "--json"]).await.json();
    let fork = ["sessions", "fork", "--last", "--at", &version(3), "--as", "copy", "--json"];
    let forked = place.helix(&fork).await.json();
    assert_eq!((&forked["from"], &forked["at"]), (&session.into(), &checkpoints[3]["version"]));
}
