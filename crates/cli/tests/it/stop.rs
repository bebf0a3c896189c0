//! `helix interrupt` and `helix abort`, from another process than the run's.

use rustix::process::Signal;
use serde_json::json;

use crate::support::Place;
use crate::support::server::{Turn, model};

#[tokio::test]
async fn a_run_of_another_process_is_interrupted_and_goes_on_later() {
    let place = Place::new();
    let demo = place.start_demo("15", &[]).await;
    let session = demo.session.clone();
    let asked = place.helix(&["interrupt", &session, "--reason", "lunch"]).await;
    assert_eq!((asked.code, &*asked.stderr), (0, ""));
    let told = format!("asked to stop at the end of the step\ngo on    helix resume {session}\n");
    assert_eq!(asked.stdout, told);
    let done = demo.end().await;
    assert_eq!(done.code, 4, "{done:?}");
    let log = place.helix(&["sessions", "log", &session]).await;
    assert!(log.stdout.contains("run_ended interrupted lunch"), "{log:?}");
    // Nothing runs any more.
    let again = place.helix(&["interrupt", &session, "--json"]).await;
    assert_eq!((again.code, &again.json_error()["code"]), (1, &"nothing_to_resume".into()));
    assert_eq!(place.helix(&["resume", &session]).await.code, 0);
}

#[tokio::test]
async fn a_run_of_another_process_is_aborted() {
    let place = Place::new();
    let demo = place.start_demo("2000", &[]).await;
    let session = demo.session.clone();
    let asked = place.helix(&["abort", &session, "--json"]).await;
    let expected = json!({ "session": session, "requested": "abort", "aborted": true });
    assert_eq!((asked.code, asked.json()), (0, expected));
    assert_eq!(demo.end().await.code, 4);
    let again = place.helix(&["abort", &session, "--json"]).await;
    assert_eq!((again.code, &again.json_error()["code"]), (1, &"nothing_to_resume".into()));
}

#[tokio::test]
async fn a_session_whose_process_was_killed_is_aborted_and_cannot_be_interrupted() {
    let place = Place::new();
    let demo = place.start_demo("2000", &[]).await;
    let session = demo.session.clone();
    demo.signal(Signal::KILL);
    demo.end().await;
    // It counts as alive for a while, and then is ended here.
    let done = place.helix(&["abort", &session]).await;
    assert_eq!((done.code, &*done.stdout), (0, &*format!("aborted {session}\n")), "{done:?}");
    assert!(done.stderr.contains("waiting for up to 15 s until it has"), "{done:?}");
    assert!(done.stderr.contains("The process of the run is gone"), "{done:?}");
    let shown = place.helix(&["sessions", "show", &session]).await;
    assert!(shown.stdout.contains("status   aborted"), "{shown:?}");
}

#[tokio::test]
async fn a_session_that_waits_is_aborted_by_its_agent_file_and_without_a_model() {
    let place = Place::new();
    let call = json!({ "path": "a.txt", "text": "one" });
    let model = model(vec![Turn::call("write_file", call)]).await;
    place.ask(&model);
    let agent = "name = \"w\"\nprompt = \"x\"\n[tools.files]\nroot = \"data\"\nwrite = true\n\
                 requires_approval = true\n";
    place.write("agent.toml", agent);
    place.write("data/there.txt", "");
    assert_eq!(place.helix(&["run", "agent.toml", "Write."]).await.code, 3);
    drop(model);
    std::fs::remove_file(place.path("helix.toml")).unwrap();

    let interrupt = place.helix(&["interrupt", "--last"]).await;
    assert_eq!(interrupt.code, 1);
    assert!(interrupt.stderr.contains("the session waits for people"), "{interrupt:?}");
    std::fs::rename(place.path("agent.toml"), place.path("moved.toml")).unwrap();
    let gone = place.helix(&["abort", "--last"]).await;
    assert_eq!(gone.code, 1);
    assert!(gone.stderr.contains("the agent file of the session is gone"), "{gone:?}");
    let done = place.helix(&["abort", "--last", "--agent", "moved.toml", "--reason", "no"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let late = place.helix(&["approvals", "approve", "1.0", "--last", "--json"]).await;
    assert_eq!((late.code, &late.json_error()["code"]), (1, &"answer_to_aborted".into()));
    assert!(!place.path("data/a.txt").exists());
}
